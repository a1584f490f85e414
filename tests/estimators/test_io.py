"""Model files: what comes back, and what is refused."""

import errno
import json
import os
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from seminmf import BayesianSkellamSNMF, SkellamSNMF, load, sample_skellam_snmf
from seminmf._estimators import container

# A few iterations make a model.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF]


def data(dtype=np.float64, M=1, missing=0.1):
    X, _, _ = sample_skellam_snmf(30, 5, 2, M=M, missing=missing, random_state=0)
    return X.astype(dtype)


def fitted(cls=SkellamSNMF, X=None, **parameters):
    parameters = {"n_components": 2, "max_iter": 25, "random_state": 0, **parameters}
    return cls(**parameters).fit(data() if X is None else X)


def public_state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_same(loaded, saved):
    """Equal to the last bit, types included."""
    assert type(loaded) is type(saved)
    assert public_state(loaded).keys() == public_state(saved).keys()
    for name, value in public_state(saved).items():
        other = getattr(loaded, name)
        np.testing.assert_array_equal(other, value, err_msg=name)
        assert np.asarray(other).dtype == np.asarray(value).dtype, name
    for name, array in saved._priors.parameters.items():
        np.testing.assert_array_equal(loaded._priors.parameters[name], array)
    assert loaded._unit == saved._unit


@pytest.mark.parametrize("likelihood", ["real", "integer"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_round_trip_is_exact(cls, dtype, likelihood, tmp_path):
    X = data(dtype)
    model = fitted(cls, X, likelihood=likelihood)
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert_same(loaded, model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.impute(X), model.impute(X))
    assert loaded.score(X) == model.score(X)


def test_a_posterior_draws_the_same(tmp_path):
    model = fitted(BayesianSkellamSNMF)
    model.save(tmp_path / "model")
    for mine, other in zip(model.sample(3, 0), load(tmp_path / "model").sample(3, 0), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_feature_names_survive(tmp_path):
    names = ["a", "β", 'with "quotes"', "", "e"]
    X = pd.DataFrame(data(), columns=names)
    model = fitted(X=X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.feature_names_in_.dtype == object
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(X.rename(columns={"a": "z"}))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_array_priors_survive(cls, order, tmp_path):
    atom_shape = np.asarray(np.random.RandomState(0).uniform(1, 2, (2, 2, 5)), order=order)
    model = fitted(cls, activation_rate_prior=[0.01, 0.02], atom_shape_prior=atom_shape)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(loaded, model)
    np.testing.assert_array_equal(loaded.activation_rate_prior, [0.01, 0.02])
    np.testing.assert_array_equal(loaded.atom_shape_prior, atom_shape)
    np.testing.assert_array_equal(loaded.transform(data()), model.transform(data()))
    loaded.fit(data())


def test_priors_of_each_sample_survive(tmp_path):
    model = fitted(activation_shape_prior=np.full((30, 2), 1.5))
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="one row for each of the 30 samples"):
        load(tmp_path / "model").transform(data())


def test_parameters_of_numpy_and_generators(tmp_path):
    model = fitted(
        n_components=np.int64(2),
        tol=np.float64(0.1 + 0.2),
        random_state=np.random.RandomState(0),
        activation_shape_prior=np.array(1.25),
    )
    model.save(tmp_path / "model")
    parameters = load(tmp_path / "model").get_params()
    assert parameters["n_components"] == 2
    assert parameters["tol"] == 0.1 + 0.2
    assert parameters["activation_shape_prior"] == 1.25
    assert parameters["random_state"] is None


def test_the_header_is_json(tmp_path):
    fitted().save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        metadata = file.metadata()

    def refuse(literal):
        raise AssertionError(f"{literal} is not JSON")

    content = json.loads(metadata["seminmf"], parse_constant=refuse)
    assert content["format"] == "seminmf"
    header = content["header"]
    assert header["format_version"] == 1
    assert header["estimator"] == "SkellamSNMF"
    assert header["fitted"]["_price"] > 0 and header["fitted"]["n_same_starts_"] >= 1


def test_the_same_fit_is_the_same_file(tmp_path):
    for name in ("first", "second"):
        fitted(BayesianSkellamSNMF).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


# --- writing ----------------------------------------------------------------------------------


def test_an_unfitted_estimator_is_refused(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        SkellamSNMF().save(tmp_path / "model")
    assert not os.listdir(tmp_path)


def test_other_estimators_are_refused(tmp_path):
    class Mine(SkellamSNMF):
        pass

    with pytest.raises(ValueError, match="found Mine"):
        fitted(Mine).save(tmp_path / "model")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer"),
        ({"tol": float("nan")}, "tol must be a number"),
        ({"verbose": object()}, "verbose must be a number or text"),
        ({"atom_shape_prior": ["a", "b"]}, "atom_shape_prior must hold numbers"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(changed, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fitted().set_params(**changed).save(tmp_path / "model")
    assert not os.listdir(tmp_path)


def test_a_failure_leaves_the_older_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    model = fitted()
    model.save(path)
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        fitted(random_state=1).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_an_interruption_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), container.written_whole(tmp_path / "model") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)


def test_errors_name_the_file_and_not_its_beginning(tmp_path, monkeypatch):
    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        fitted().save(tmp_path / "model")
    assert caught.value.filename == str(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "model"
    path.touch()
    path.chmod(0o640)
    fitted().save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with container.written_whole(tmp_path / "pipe") as file:
        file.write(b"content")
    reader.join()
    assert received == [b"content"]
    assert (tmp_path / "pipe").is_fifo()


def test_parts_of_killed_writings_are_removed(tmp_path):
    token = "0123456789abcdef"
    others = {f".other.{token}.part", "model.part", f".model.x.{token}.part", ".model.01.part"}
    for name in (f".model.{token}.part", f".model[1].{token}.part", *others):
        (tmp_path / name).touch()
    container.remove_parts(tmp_path / "model[1]")
    container.remove_parts(tmp_path / "model")
    assert {path.name for path in tmp_path.iterdir()} == others


def test_a_scale_of_features_survives(tmp_path):
    model = fitted()
    model.feature_scale_ = np.arange(1.0, 6.0)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_scale_, model.feature_scale_)
    for wrong in (np.ones(4), np.zeros(5), np.full(5, np.nan)):
        model.feature_scale_ = wrong
        with pytest.raises(ValueError, match="feature_scale_"):
            model.save(tmp_path / "model")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        fitted().save(tmp_path / "nowhere" / "model")


def test_a_link_stays_a_link(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    fitted().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    load(target)


# --- refusals ---------------------------------------------------------------------------------


def content(path):
    """Header and arrays of a file."""
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in set(file.keys())}
        return json.loads(file.metadata()["seminmf"])["header"], arrays


def write(path, header, arrays, form="seminmf"):
    """A file that only its content speaks against: it has the checksum that belongs to it."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(arrays, path, metadata=container.envelope(form, header, arrays))


def refused(path, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith(".") and "\n" not in message


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    fitted(BayesianSkellamSNMF).save(path)
    return path


@pytest.mark.parametrize("bytes_", [b"", b"no model", b"\xff" * 100, b"\x80\x04pickle" * 10])
def test_other_files_are_refused(bytes_, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(bytes_)
    refused(path, "is not a seminmf model")


@pytest.mark.parametrize("kept", [4, 40, 0.5, -1])
def test_truncated_files_are_refused(kept, saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    refused(saved, "is not a seminmf model")


def test_missing_files_are_what_python_says(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_other_formats_are_refused(saved):
    header, arrays = content(saved)
    write(saved, header, arrays, form="pt")
    refused(saved, "format is 'pt'")
    save_file(arrays, saved)
    refused(saved, "format is None")
    save_file(arrays, saved, metadata={"seminmf": '{"format": "seminmf"}'})
    refused(saved, "no header")
    for text in ("{", "[" * 100_000, "[]", "null", '"seminmf"'):
        save_file(arrays, saved, metadata={"seminmf": text})
        refused(saved, "is not a seminmf model")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format_version": 2}, "version is 2"),
        ({"format_version": None}, "version is None"),
        ({"estimator": "os.system"}, "'os.system', which is unknown"),
        ({"estimator": ["SkellamSNMF"]}, "unknown"),
        ({"parameters": None}, "no parameters"),
        ({"fitted": []}, "no fitted"),
        ({"feature_names": ["a"]}, "one name for each of its 5 features"),
        ({"feature_names": [1, 2, 3, 4, 5]}, "not all text"),
    ],
)
def test_wrong_headers_are_refused(change, reason, saved):
    header, arrays = content(saved)
    write(saved, {**header, **change}, arrays)
    refused(saved, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"evil": 1}, "unknown parameter, 'evil'"),
        ({"n_components": 3}, "shape"),
        ({"n_components": "2"}, "n_components must be an integer"),
        ({"likelihood": "gauss"}, "likelihood must be one of"),
        ({"acceleration": "fast"}, "acceleration must be one of"),
        ({"random_state": {"a": 1}}, "neither a number nor text"),
    ],
)
def test_wrong_parameters_are_refused(change, reason, saved):
    header, arrays = content(saved)
    header["parameters"].update(change)
    write(saved, header, arrays)
    refused(saved, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n_iter_": None}, "n_iter_ is None"),
        ({"n_iter_": 10_000}, "lower_bounds_ has the shape"),
        ({"converged_": 1}, "converged_ is 1"),
        ({"stop_reason_": 1}, "stop_reason_ is 1"),
        ({"stop_reason_": "boredom"}, "stop_reason_ is 'boredom', which is unknown"),
        ({"dispersion_": 0.0}, "dispersion_ is 0.0"),
        ({"dispersion_": "nan"}, "dispersion_ is nan"),
        ({"_unit": "one"}, "_unit is 'one'"),
        ({"n_features_in_": 0}, "n_features_in_ is 0"),
    ],
)
def test_wrong_numbers_are_refused(change, reason, saved):
    header, arrays = content(saved)
    header["fitted"].update(change)
    write(saved, header, arrays)
    refused(saved, reason)


def with_value(array, value):
    changed = array.copy()
    changed.flat[0] = value
    return changed


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("atoms_", None, "atoms_ is missing"),
        ("activations_", None, "activations_ is missing"),
        ("_prior.atom_shape", None, "_prior.atom_shape is missing"),
        ("atoms_", lambda a: a[:, :, :-1].copy(), "atoms_ has the shape"),
        ("activations_", lambda a: a.ravel(), "activations_ has the shape"),
        ("activation_shape_", lambda a: a[:-1].copy(), "activation_shape_ has the shape"),
        ("_prior.atom_shape", lambda a: np.ones((3, 1, 1)), "does not suit"),
        ("_prior.activation_rate", lambda a: np.ones(()), "does not suit"),
        ("atoms_", lambda a: a.astype(np.int64), "type int64"),
        ("atoms_", lambda a: a.astype(np.float16), "type F16"),
        ("activations_", lambda a: a.astype(np.float32), "type float32"),
        ("lower_bounds_", lambda a: a.astype(np.float32), "type float32"),
        ("atoms_", lambda a: with_value(a, np.nan), "atoms_ has values"),
        ("atoms_", lambda a: with_value(a, -0.1), "atoms_ has values"),
        ("activations_", lambda a: with_value(a, np.inf), "activations_ has values"),
        ("atom_shape_", lambda a: with_value(a, 0.0), "atom_shape_ has values"),
        ("_prior.activation_shape", lambda a: with_value(a, np.nan), "activation_shape has"),
    ],
)
def test_wrong_arrays_are_refused(name, change, reason, saved):
    header, arrays = content(saved)
    array = arrays.pop(name)
    if change is not None:
        arrays[name] = change(array)
    write(saved, header, arrays)
    refused(saved, reason)


def test_parameters_that_a_file_lacks_have_their_defaults(saved):
    header, arrays = content(saved)
    del header["parameters"]["init"]
    write(saved, header, arrays)
    assert load(saved).init == "auto"


@pytest.mark.parametrize(
    ("header", "arrays", "reason"),
    [
        ({"stream": 3}, {}, "not described"),
        ({"stream": {"n_steps": 0, "n_samples": 3.0}}, {}, "above 0"),
        ({"stream": {"n_steps": 2, "n_samples": "inf"}}, {}, "above 0"),
        ({"stream": {"n_steps": 2}}, {}, "n_samples is None"),
        ({}, {"stream.counts": np.ones((2, 2, 3))}, "has the shape"),
        ({}, {"stream.counts": np.full((2, 2, 5), -1.0)}, "at least 0"),
        ({}, {"stream.price": np.array([1.0, np.nan])}, "not finite"),
        ({}, {"stream.grams": np.ones((3, 4, 5))}, "has the shape"),
        ({}, {"objectives_": np.ones(40)}, "objectives_ has the shape"),
    ],
)
def test_wrong_streams_are_refused(header, arrays, reason, tmp_path):
    rng = np.random.default_rng(0)
    model, path = SkellamSNMF(2, random_state=0), tmp_path / "model"
    for _ in range(12):
        model.partial_fit(rng.normal(size=(30, 5)))
    model.save(path)
    old_header, old_arrays = content(path)
    write(path, old_header | header, old_arrays | arrays)
    refused(path, reason)
