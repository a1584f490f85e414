"""What a model string means, and the one sentence for each way to write it wrong."""

import re

import pytest

from seminmf._model.language import read, sizes_of
from seminmf._model.network import derive


def roles(model, **options):
    plan = read(model)
    network = derive(plan, **options)
    return {
        name: "".join(str(plan.factors[name][n]) for n in role.new)
        + "|"
        + "".join(str(plan.factors[name][n]) for n in role.given)
        for name, role in network.roles.items()
        if not role.is_free
    }


def test_a_model_is_its_factors_and_latent_letters():
    plan = read("na,abc,jb,kc->njk")
    assert list(plan.factors) == ["na", "abc", "jb", "kc"]
    assert plan.latent == ["a", "b", "c"]
    assert plan.sample == "n"


def test_names_and_differences_are_read():
    plan = read("gain:nr,(t-d)r,cdr->ntc")
    assert list(plan.factors) == ["gain", "(t-d)r", "cdr"]
    assert plan.factors["(t-d)r"][0] == ("t", "d")
    sizes = sizes_of(plan, {"r": 2, "d": 4}, {"X": (5, 10, 3)})
    assert sizes == {"r": 2, "d": 4, "n": 5, "t": 10, "c": 3}
    assert plan.observations[0].padding(sizes) == {"n": 0, "t": 3, "c": 0}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nr,jr,kr->njk", {"jr": "j|r", "kr": "k|r"}),
        ("na,abc,jb,kc->njk", {"abc": "bc|a", "jb": "j|b", "kc": "k|c"}),
        ("na,ajb,bk->njk", {"ajb": "jb|a", "bk": "k|b"}),
        ("zna,ajb,bkz->njk", {}),
        ("nk,kt - n,t -> nt", {"kt": "t|k", "t": "t|"}),
        ("(t-d)r,dcr->tc", {"dcr": "dc|r"}),
        ("ndr,(t-d)r,cr->ntc", {"(t-d)r": "(t-d)|r", "cr": "c|r"}),
        ("r,A:ir,A:jr->ij", {"A": "i|r"}),
        ("nr,rb,bt->nt", {"rb": "b|r", "bt": "t|b"}),
    ],
)
def test_which_factors_sum_to_1_follows_from_the_string(model, expected):
    assert roles(model) == expected


def test_the_unit_may_be_chosen():
    assert roles("nr,jr,kr->njk", unit="kr") == {"nr": "n|r", "jr": "j|r"}


def test_a_unit_that_terms_share_is_told():
    plan = read({"a": "nr,jr,kr->njk", "b": "nr,mr->nm"})
    assert derive(plan).shared_units == {"nr": (0, 1)}


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("nr,jr", "'->' and the letters of the data; found something else in 'nr,jr»«'"),
        ("nr,jr->", "at least one letter after '->'"),
        ("nr,jr->njj", "each letter of the data once; found something else in 'nr,jr->nj»j«'"),
        ("nr,,jr->nj", "an operand, such as 'nr'; found none in 'nr,»,«jr->nj'"),
        ("nrr,jr->nj", "a letter once in an operand; found 'r' twice in '»nrr«,jr->nj'"),
        ("nr,jrk->nj", "letter 'k' in the data or in a second operand; found it unused"),
        ("nr,jr->njk", "letter 'k' of the data in each term; found a term without it in '»nr,jr«"),
        ("nr,nr->n", "found two readings in 'nr,»nr«->n'"),
        ("nr,jr + rn,jr->nj", "found two readings in 'nr,jr + »rn«,jr->nj'"),
        ("(d-t)r,dcr->tc", "found a cycle in '»(d-t)r«,dcr->tc'"),
        ("(t-d r,dr->t", "a difference of two letters, such as '(t-d)'"),
        ("A:nr,A:rjk,k->njk", "found 3 axes after 2 in 'A:nr,»A:rjk«,k->njk'"),
        ("nr,j1->nj", "found something else in 'nr,j»1«->nj'"),
        (3, "model must be a string such as 'nr,jr->nj'"),
        ({}, "model must be a string such as 'nr,jr->nj'"),
        ({"a": 3}, "model must have strings as names and models"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(model, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read(model)


@pytest.mark.parametrize(
    ("model", "n_components", "shape", "sentence"),
    [
        ("nr,jr->nj", {"q": 2, "r": 1}, (3, 4), "found one for 'q', not of the model"),
        ("nr,jr->nj", {"n": 2, "r": 1}, (3, 4), "found one for 'n', whose size is that of"),
        ("nr,jr->nj", 0, (3, 4), "give letter 'r' a size, an integer of at least 1; found 0"),
        ("nr,jr->nj", {}, (3, 4), "give letter 'r' a size, an integer of at least 1; found none"),
        ("na,ab,jb->nj", 3, (3, 4), "n_components must be a dict {'a': ..., 'b': ...}"),
        ("nr,jr->nj", 2, (3, 4, 5), "an axis for each letter of 'nj'; found the shape (3, 4, 5)"),
        ("r,A:ir,A:jr->ij", 2, (3, 4), "Factor 'A' must have one shape; found 3 for 'i' and 4"),
    ],
)
def test_sizes_that_do_not_fit_are_told(model, n_components, shape, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        sizes_of(read(model), n_components, {"X": shape})


def test_a_letter_of_two_sizes_is_told():
    plan = read({"a": "nr,jr->nj", "b": "nr,mr->nm"})
    sentence = "Letter 'n' must have one size; found 5 and 6, the latter on axis 0"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        sizes_of(plan, 2, {"a": (5, 3), "b": (6, 3)})


def test_a_free_tied_factor_is_told():
    with pytest.raises(ValueError, match="found 'A', which would be free, in '»A:ir«,»A:jr«'"):
        derive(read("A:ir,A:jr->ij"))


def test_an_unknown_unit_is_told():
    with pytest.raises(ValueError, match="unit must be None or one of 'nr', 'jr'; found 'kr'"):
        derive(read("nr,jr->nj"), unit="kr")
