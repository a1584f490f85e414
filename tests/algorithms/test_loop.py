"""The loop that all algorithms share: when it ends, what it tells, and where it goes on."""

import math

import pytest

from seminmf._algorithms.loop import Info, Result, Run, Stopping, Unrecorded, run


class Halving:
    """x → x / 2 with the objective −x; it may be interrupted at some step."""

    def __init__(self, tells_following=False, interrupted_at=None):
        self.tells_following, self.interrupted_at = tells_following, interrupted_at
        self.n_steps = 0

    def start(self, problem, point):
        return point

    def point(self, state):
        return state

    def step(self, problem, state):
        if self.n_steps == self.interrupted_at:
            raise KeyboardInterrupt
        self.n_steps += 1
        following = state / 2
        return following, Info(-following if self.tells_following else -state)

    def evaluate(self, problem, state):
        return -state


class Steps:
    """Counts what a bar would show."""

    def __init__(self):
        self.objectives, self.n_skipped = [], 0

    def update(self, objective):
        self.objectives.append(objective)

    def skip(self, n):
        self.n_skipped += n


class Notes(Unrecorded):
    """What a recorder was told; it may know a run from an earlier time."""

    def __init__(self, known=None):
        self.known, self.kept, self.ended, self.stopped = known, [], [], []

    def begin(self, state, point):
        return self.known or super().begin(state, point)

    def keep(self, run):
        self.kept.append(run._replace(objectives=list(run.objectives)))

    def end(self, run):
        self.ended.append(run)

    def stop(self, run):
        self.stopped.append(run)


@pytest.fixture(params=[False, True], ids=["objective before", "objective after"])
def tells_following(request):
    return request.param


def stopping(tells_following, **options):
    options = {"max_iter": 6, "tol": 0.0, **options}
    return Stopping(**options, of_following=tells_following)


# --- when it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 3])
def test_the_rule_looks_back_over_its_window(window):
    rule = Stopping(max_iter=99, tol=0.1, window=window)
    assert not rule.is_met([-1.0] * window)  # too early to tell
    assert rule.is_met([-1.0] * (window + 1))
    assert rule.is_met([-9.0, -1.05, *[-1.0] * window])
    assert not rule.is_met([-1.2, *[-1.0] * window])


def test_a_tolerance_is_a_share_of_the_objective_or_a_number():
    objectives = [-1005.0, -1000.0]
    assert Stopping(max_iter=99, tol=0.01, window=1).is_met(objectives)
    assert not Stopping(max_iter=99, tol=0.01, window=1, relative=False).is_met(objectives)
    assert Stopping(max_iter=99, tol=6.0, window=1, relative=False).is_met(objectives)


@pytest.mark.parametrize("objectives", [[-1.0, -1.0], [-1.0, -2.0], [math.nan, -1.0]])
def test_without_a_tolerance_nothing_is_the_end(objectives):
    assert not Stopping(max_iter=99, tol=0.0, window=1).is_met(objectives)


def test_an_objective_that_is_not_known_is_no_end():
    assert not Stopping(max_iter=99, tol=0.5, window=1).is_met([math.nan, -1.0])


def test_iterations_end_by_their_number(tells_following):
    progress = Steps()
    rule = stopping(tells_following, max_iter=4)
    result = run(Halving(tells_following), None, lambda: 16.0, rule, progress)
    assert result.reason == "max_iter" and not result.converged and not result.interrupted
    assert result.state == 1.0 and result.n_iter == 4
    assert result.objectives == [-16.0, -8.0, -4.0, -2.0, -1.0]
    expected = result.objectives[1:] if tells_following else result.objectives[:-1]
    assert progress.objectives == expected


def test_iterations_end_by_their_tolerance(tells_following):
    rule = stopping(tells_following, max_iter=99, tol=0.5, window=2, relative=False)
    result = run(Halving(tells_following), None, lambda: 16.0, rule, Steps())
    assert result.converged and result.reason == "tolerance"
    assert result.objectives[-3:] == [-0.5, -0.25, -0.125]
    assert result.objectives[-1] == -result.state


def test_no_iterations_return_the_start(tells_following):
    result = run(
        Halving(tells_following), None, lambda: 16.0, stopping(tells_following, max_iter=0), Steps()
    )
    assert result.state == 16.0 and result.objectives == [-16.0] and result.n_iter == 0


# --- what is told, and where it goes on -----------------------------------------------------------


def test_a_recorder_knows_each_state_and_the_end(tells_following):
    notes = Notes()
    result = run(
        Halving(tells_following), None, lambda: 16.0, stopping(tells_following), Steps(), notes
    )
    assert [kept.state for kept in notes.kept] == [16.0 / 2**n for n in range(6)]
    assert notes.ended == [Run(*result)] and not notes.stopped


@pytest.mark.parametrize("n_before", [0, 1, 4])
def test_a_run_goes_on_from_what_was_kept(tells_following, n_before):
    rule, notes = stopping(tells_following), Notes()
    whole = run(Halving(tells_following), None, lambda: 16.0, rule, Steps(), notes)
    algorithm, progress = Halving(tells_following), Steps()
    again = run(algorithm, None, lambda: 16.0, rule, progress, Notes(notes.kept[n_before]))
    assert again == whole
    assert algorithm.n_steps == 6 - n_before
    assert progress.n_skipped == n_before


def test_a_run_that_had_ended_is_not_done_again(tells_following):
    algorithm = Halving(tells_following)
    known = Run(1.0, [-2.0, -1.0], "tolerance")
    result = run(algorithm, None, lambda: 16.0, stopping(tells_following), Steps(), Notes(known))
    assert result == Result(*known) and algorithm.n_steps == 0


@pytest.mark.parametrize("at", [0, 3])
def test_a_step_that_is_cut_off_leaves_no_trace(tells_following, at):
    notes, rule = Notes(), stopping(tells_following)
    algorithm = Halving(tells_following, interrupted_at=at)
    result = run(algorithm, None, lambda: 16.0, rule, Steps(), notes)
    assert result.interrupted and result.n_iter == at
    assert result.state == 16.0 / 2**at and result.objectives[-1] == -result.state
    (stopped,) = notes.stopped
    again = run(Halving(tells_following), None, lambda: 16.0, rule, Steps(), Notes(stopped))
    assert again == run(Halving(tells_following), None, lambda: 16.0, rule, Steps())


# --- results --------------------------------------------------------------------------------------


def test_another_end_is_taken_unless_it_is_worse():
    result = Result(state="old", objectives=[-3.0, -2.0], reason="tolerance")
    better = result.ending_with("new", -1.5)
    assert better == Result(state="new", objectives=[-3.0, -1.5], reason="tolerance")
    assert result.ending_with("new", -2.5) is result
    rounded = result.ending_with("new", -2.0001, rounding=0.01)
    assert rounded.state == "new" and rounded.objectives == result.objectives


def test_a_run_that_follows_counts_its_way_there():
    first = Result(state=1, objectives=[-3.0, -2.0], reason="max_iter")
    second = Result(state=2, objectives=[-1.5, -1.0], reason="tolerance")
    both = first.followed_by(second)
    assert both.state == 2 and both.converged
    assert both.n_iter == first.n_iter + 1 + second.n_iter
