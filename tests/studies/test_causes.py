"""The studies of causes: interventions do what they say, runs resume, and committed verdicts follow from committed tables by other code."""

import math
import multiprocessing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.preprocessing import OneHotEncoder

from rankfall.check.checks import rank
from studies import common
from studies.cause import analysis as cause_analysis
from studies.growth import analysis as growth
from studies.joint import analysis as joint
from studies.joint import experiment as joint_experiment
from studies.scale import analysis as scale_analysis
from studies.warning import analysis as warning_analysis
from studies.warning import experiment as warning
from studies.warning.analysis import NETWORK as WARNED
from studies.warning.analysis import outcomes

TABLES = Path(__file__).parents[2] / "docs" / "causes"
STUDIES = ("cause", "scale", "growth", "joint", "warning")
RUN = [name for name in STUDIES if (TABLES / f"{name}.csv").exists()]


def small(**block):
    torch.manual_seed(0)
    return common.Small(10, 10, 12, 3, **block)


def knobs(**changed):
    return torch.tensor([changed.get(name, free) for name, free in zip(common.KNOBS, common.FREE)])


# --- experiments


@pytest.mark.parametrize("block", [{"placement": "post"}, {"placement": "peri"}, {"skip": 0.0}, {"around": 0.5}])
def test_knobs_at_rest_change_nothing(block):
    net, (tokens, _) = small(**block), common.sorting(0, 0)
    assert torch.allclose(net(tokens), net(tokens, knobs()), atol=1e-6)


def test_knobs_change_what_they_name():
    block, x = small().blocks[0], torch.randn(2, 12, 32)
    away, together = (block(x, knobs(shared=shared, apart=0.0)) - x for shared in (0.0, 1.0))
    assert torch.allclose(away, torch.zeros_like(x), atol=1e-6)
    assert torch.allclose(together, together.mean(1, keepdim=True).expand_as(x), atol=1e-5)
    assert together.detach().norm() > 1
    alone = (block(x, knobs(shared=0.0)) - x).detach()
    assert torch.allclose(alone.mean(1), torch.zeros(2, 32), atol=1e-5) and alone.norm() > 1


@pytest.mark.parametrize("speed", [0.0, 10.0])
def test_steps_of_queries_are_scaled_and_the_first_pass_is_not(speed):
    net, (tokens, targets) = small(), common.sorting(0, 0)
    before = net(tokens, knobs()).detach()
    free, scaled = (
        torch.autograd.grad(common.grade(net, (tokens, targets, one))[0], net.blocks[0].query)[0]
        for one in (knobs(), knobs(speed=speed))
    )
    assert torch.allclose(scaled, speed * free, rtol=1e-3, atol=1e-7)
    assert torch.allclose(net(tokens, knobs(speed=speed)), before, atol=1e-5)
    with torch.no_grad():
        net.blocks[0].query += 0.1
        moved = small()
        moved.blocks[0].query += 0.1 * speed
    assert torch.allclose(net(tokens, knobs(speed=speed)), moved(tokens), atol=1e-4)


def test_entropy_is_held(monkeypatch):
    seen = []
    softmax = torch.Tensor.softmax
    monkeypatch.setattr(torch.Tensor, "softmax", lambda x, dim: seen.append(x.detach()) or softmax(x, dim))
    small()(common.sorting(0, 0)[0], knobs(fixed=1.0, deviation=2.0))
    assert len(seen) == 3 and all(torch.allclose(x.std(-1, correction=0), torch.tensor(2.0), atol=0.02) for x in seen)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    done, broken = [], {3}

    def measure(unit, device):
        if unit["a"] in broken:
            raise KeyboardInterrupt
        done.append(unit["a"])
        return [{"b": unit["a"] ** 2}]

    monkeypatch.setattr(joint_experiment, "measure", measure)
    units = [{"a": a} for a in range(5)]
    with pytest.raises(KeyboardInterrupt):
        common.run_units("joint", units, tmp_path)
    broken.clear()
    table = common.run_units("joint", units, tmp_path)
    assert done == [0, 1, 2, 3, 4] and list(table.b) == [0, 1, 4, 9, 16]


def test_several_processes_measure_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "get_context", lambda method: multiprocessing.get_context("fork"))  # which have torch
    units = joint_experiment.units("tiny")[:3]
    alone, together = (common.run_units("joint", units, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(alone, together, rtol=1e-5)


def test_chunks_of_rows_make_no_difference(monkeypatch):
    whole = joint_experiment.layer(96, 16, 2.0, 5, "cpu")
    monkeypatch.setattr(joint_experiment, "CHUNK", 96 * 7)
    parts = joint_experiment.layer(96, 16, 2.0, 5, "cpu")
    assert parts[0] == pytest.approx(whole[0], rel=1e-4) and parts[1] == pytest.approx(whole[1], rel=1e-5)


def test_every_change_of_check_can_be_built():
    changes = {
        "weights of the layers times 0.25": {"gain": 0.25},
        "branches times 1/sqrt(16)": {"branch": 0.25},
        "branches times 0.1, as behind a gate": {"branch": 0.1},
        "branches that mix tokens times 1/sqrt(16)": {"mixing": 0.25},
        "a norm after each branch": {"behind": True},
        "a norm after each addition": {"after": True},
        "a skip around each layer": {"around": 1.0},
        "a skip around each layer, the layer times 1/sqrt(16)": {"around": 0.25},
    }
    for name, options in changes.items():
        assert warning.options_of(name) == options
        model = warning.make({"placement": "pre", "skip": 1.0, "depth": 2, "gain": 1.0}, options)
        assert model(common.sorting(0, 0)[0]).isfinite().all()


# --- rules


def test_a_growth_is_told_from_another():
    layer = np.arange(1, 33)
    tables = [
        pd.DataFrame({"layer": layer, "added": added * (1 + 0.01 * seed)}).assign(kind=kind, seed=seed)
        for kind, added in (("square", layer**2.0), ("exponential", np.exp(0.3 * layer)))
        for seed in range(3)
    ]
    fits = growth.fits(pd.concat(tables).assign(depth=32, when="trained")).groupby("kind").mean(numeric_only=True)
    assert fits.power["square"] == pytest.approx(2) and fits.rate["exponential"] == pytest.approx(0.3)
    assert fits.ratio["square"] > 0 > fits.ratio["exponential"]


def test_the_variable_that_decides_is_found():
    grid = [
        {"tokens": t, "width": d, "beta": beta, "replication": k, "gradient": (t / d) ** -0.7, "stable_rank": 1 / d}
        for t in (64, 128, 256, 512)
        for d in (16, 32, 64)
        for beta in (0.43, 1.0)
        for k in range(2)
    ]
    for column, name in (("gradient", "T/d"), ("stable_rank", "d")):
        shares = joint.shares(pd.DataFrame(grid), column).groupby("variable").share.mean()
        assert shares.idxmax() == name and shares[name] == pytest.approx(1)
    assert joint.powers(pd.DataFrame(grid)).a.tolist() == pytest.approx([-0.7] * 4)


# --- committed tables


def read(name):
    if name not in RUN:
        pytest.skip(f"the study {name} is not run yet")
    return (
        pd.read_csv(TABLES / f"{name}.csv"),
        pd.read_csv(TABLES / f"{name}_verdicts.csv").set_index("key"),
        common.read_design(name)["thresholds"],
    )


def interval(values):
    """Student's t by SciPy."""
    values = np.asarray(values, float)
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return values.mean(), low, high


def flags_of(table, columns):
    """Return a column of zeros and ones for each combination of these columns' values."""
    names = table[columns].astype(str).agg(" ".join, axis=1).to_frame()
    return OneHotEncoder(sparse_output=False).fit_transform(names)


def assert_is(verdicts, key, found, holds, against):
    """Compare number and interval with the committed row, and the verdict with what follows from them."""
    row = verdicts.loc[key]
    assert (row.number, row.low, row.high) == pytest.approx(tuple(map(float, found)), rel=2e-3, abs=2e-4)
    assert row.verdict == ("holds" if holds else "contradicted" if against else "undecided")


@pytest.mark.parametrize("name", STUDIES)
def test_committed_verdicts_are_those_of_the_committed_table(name):
    table, verdicts, _ = read(name)
    again = common.decide(name, table).set_index("key")
    pd.testing.assert_frame_equal(again, verdicts, rtol=1e-3, check_dtype=False)
    assert (TABLES / f"{name}.csv").stat().st_size < 200_000


def test_effects_of_interventions_by_other_code():
    table, verdicts, limits = read("cause")
    network = ["task", "placement", "skip", "depth", "gain"]
    base = table[table.arm == "base"].set_index([*network, "seed"]).score
    sham = table[table.arm == "sham"].groupby(network).score.mean()
    fails = {key for key, mean in sham.items() if mean < limits["trains"]}

    for key, failing, holds_above in (
        ("up", True, False),
        ("apart", True, False),
        ("fast", True, True),
        ("down", False, True),
        ("frozen", False, False),
    ):
        scores = table[table.arm == key].set_index([*network, "seed"]).score
        means = (scores - base.reindex(scores.index)).groupby(network).mean()
        effect = interval([value for name, value in means.items() if (name in fails) == failing])
        least = limits["effect"] if failing else -limits["effect"]
        above, below = effect[1] > least, effect[2] < least
        assert_is(verdicts, key, effect, above if holds_above else below, below if holds_above else above)


def test_early_numbers_beside_flags_of_architecture_and_depth_by_regression():
    table, verdicts, limits = read("cause")
    base = table[table.arm == "base"]
    for key, name in (("residual_within", "residual_step_50"), ("gradient_within", "gradient_queries_step_50")):
        known = base[base[name] > 0]
        flags = flags_of(known, cause_analysis.NETWORK)
        x, y = (
            values - LinearRegression(fit_intercept=False).fit(flags, values).predict(flags)
            for values in (np.log(known[name].to_numpy()), known.score.to_numpy())
        )
        # What is left has mean 0 in each network, so Pearson's r of any networks follows from their sums of products.
        xx, xy, yy = (flags.T @ product for product in (x * x, x * y, y * y))

        def r(networks, axis=-1, xx=xx, xy=xy, yy=yy):
            return xy[networks].sum(axis) / np.sqrt(xx[networks].sum(axis) * yy[networks].sum(axis))

        networks, row = np.arange(flags.shape[1]), verdicts.loc[key]
        low, high = stats.bootstrap((networks,), r, n_resamples=2000, method="percentile", rng=1).confidence_interval
        assert r(networks) == pytest.approx(stats.pearsonr(x, y)[0]) == pytest.approx(row.number, abs=1e-3)
        assert (row.low, row.high) == pytest.approx((low, high), abs=0.06)
        sure = "holds" if row.low > limits["within"] else "contradicted" if row.high < limits["within"] else "undecided"
        assert row.verdict == sure


def test_curves_of_scale_by_other_code():
    table, verdicts, limits = read("scale")
    groups = {"post": table.place == "after the addition", "behind": table.place.str.contains("behind")}
    groups["pre"] = ~groups["post"] & ~groups["behind"]
    for key, place, low, high in (
        ("post_falls", "post", 0.15, 1.5),
        ("pre_saturates", "pre", 1.5, 5.0),
        ("behind_rises", "behind", 0.15, 5.0),
    ):
        some = table[groups[place]]
        means = some.groupby(["type", "gain"]).kept.mean().unstack()
        found = interval(means[high] - means[low])
        ok = {
            "post_falls": found[2] < limits["falls"],
            "pre_saturates": max(-found[1], found[2]) < limits["saturates"],
            "behind_rises": found[1] > limits["rises"],
        }[key]
        bad = {
            "post_falls": found[1] > limits["falls"],
            "pre_saturates": found[1] > limits["saturates"] or found[2] < -limits["saturates"],
            "behind_rises": found[2] < limits["rises"],
        }[key]
        assert_is(verdicts, key, found, ok, bad)
    for place, chosen in groups.items():
        some = table[chosen].pivot_table(index=["width", "depth", "entering", "gain"], columns="type", values="kept")
        guess = pd.DataFrame({name: some.drop(columns=name).mean(axis=1) for name in some})
        wanted, guessed = (frame.stack(future_stack=True).dropna() for frame in (some, guess))
        assert verdicts.number[f"one_curve_{place}"] == pytest.approx(
            r2_score(wanted, guessed.reindex(wanted.index)), rel=1e-3, abs=1e-3
        )


def test_growth_by_other_code():
    table, verdicts, limits = read("growth")
    found = []
    for key, one in table[table.depth >= 16].groupby(["kind", "depth", "seed", "when"]):
        late = one[one.layer >= key[1] / 4]
        y = np.log(late.added)
        power = stats.linregress(np.log(late.layer), y)
        rest = [
            (1 - stats.linregress(x, y).rvalue ** 2) * ((y - y.mean()) ** 2).sum()
            for x in (late.layer, np.log(late.layer))
        ]
        found.append((*key, power.slope, math.log10(rest[0] / rest[1])))
    found = pd.DataFrame(found, columns=["kind", "depth", "seed", "when", "power", "ratio"])
    trained = found[found.when == "trained"]
    ratio = interval(trained[trained.kind == "pre-norm"].ratio)
    assert_is(verdicts, "pre_exponential", ratio, ratio[2] < limits["ratio"], ratio[1] > limits["ratio"])
    for key, kind in (("pre_linear", "pre-norm"), ("peri_linear", "peri-norm")):
        power = interval(trained[trained.kind == kind].power)
        inside = limits["linear_from"] < power[1] and power[2] < limits["linear_to"]
        assert_is(verdicts, key, power, inside, power[2] < limits["linear_from"] or power[1] > limits["linear_to"])
    some = table[(table.kind == "pre-norm") & (table.when == "trained") & (table.depth >= 16)]
    partial = []
    for _, one in some.groupby(["depth", "seed"]):
        r = np.corrcoef(
            np.log(one[["increment", "weights"]].to_numpy().T), one.layer
        )  # partial correlation from three correlations
        partial.append((r[0, 1] - r[0, 2] * r[1, 2]) / math.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2)))
    partial = interval(partial)
    assert_is(verdicts, "follows_weights", partial, partial[1] > limits["follows"], partial[2] < limits["follows"])


def test_variables_of_the_joint_limit_by_regression():
    table, verdicts, limits = read("joint")
    table = table.assign(ratio=table.tokens / table.width)
    for key, column, betas in (
        ("gradient_one", "gradient", (0.43, 1.0)),
        ("gradient_one_above", "gradient", (2.0, 3.0)),
        ("rank_one", "stable_rank", (0.43, 1.0, 2.0, 3.0)),
    ):
        shares = []
        for _, points in table[table.beta.isin(betas)].groupby(["replication", "beta"]):
            y, flags = np.log(points[column].to_numpy()), flags_of(points, ["ratio"])
            r2 = LinearRegression(fit_intercept=False).fit(flags, y).score(flags, y)
            shares.append(1 - (1 - r2) * (len(y) - 1) / (len(y) - flags.shape[1]))  # adjusted R2 is epsilon squared
        share = interval(np.reshape(shares, (-1, len(betas))).mean(1))
        assert_is(verdicts, key, share, share[1] > limits["one"], share[2] < limits["one"])
    for key, least, group in (("level", 4, "width"), ("vanish", 1, "ratio")):
        powers = []
        for _, points in table[table.beta.isin((0.43, 1.0)) & (table.ratio >= least)].groupby("replication"):
            x = np.column_stack([np.log(points.tokens), flags_of(points, ["beta", group])])
            powers.append(LinearRegression(fit_intercept=False).fit(x, np.log(points.gradient)).coef_[0])
        power, most = interval(powers), limits["level"] if key == "level" else 0
        level = max(-power[1], power[2]) < most, power[1] > most or power[2] < -most
        assert_is(verdicts, key, power, *(level if key == "level" else (power[2] < 0, power[1] > 0)))


def test_what_advice_did_by_paired_tests():
    table, verdicts, limits = read("warning")
    says, library = {}, {"bert", "megatron-bert", "roberta-prelayernorm"}
    for key, one in table.groupby(WARNED):
        low, high = stats.ttest_rel(one.after, one.before).confidence_interval(0.95)
        says[key] = (
            bool(one.flagged.iloc[0]),
            "helps" if low > limits["matters"] else "harms" if high < -limits["matters"] else "",
        )
    for key, flagged, what in (
        ("pays", True, "helps"),
        ("pays_real", True, "helps"),
        ("harmless", True, "harms"),
        ("harmless_real", None, "harms"),
        ("control", False, "harms"),
    ):
        real = key.endswith("real")
        some = [said == what for k, (was, said) in says.items() if flagged in (was, None) and (k[0] in library) == real]
        share = stats.binomtest(sum(some), len(some)).proportion_ci(method="wilson")
        row = verdicts.loc[key]
        assert (row.number, row.low, row.high) == pytest.approx((np.mean(some), share.low, share.high), abs=1e-3)
    small = table[~table.placement.isin(library)]
    early = [
        stats.ttest_rel(network.after_early, network.before_early).confidence_interval(0.95).high < -limits["matters"]
        for _, network in small[~small.flagged].groupby(WARNED)
    ]
    share = stats.binomtest(sum(early), len(early)).proportion_ci(method="wilson")
    row = verdicts.loc["control_early"]
    assert (row.number, row.low, row.high) == pytest.approx((np.mean(early), share.low, share.high), abs=1e-3)
    unlike = small[small.flagged & (small.change != warning.QUARTER)]
    found = interval((unlike.after - unlike.quartered).groupby([unlike[name] for name in WARNED]).mean())
    assert_is(verdicts, "beats_one_change", found, found[1] > limits["matters"], found[2] < limits["matters"])


def test_check_quotes_what_the_study_found():
    """Recompute the counts that `check --explain rank-kept` states, and how many flagged networks learn."""
    table, _, limits = read("warning")
    first = table.groupby(WARNED)[["flags", "residual"]].first().reset_index()
    networks = outcomes(table, limits).merge(first)
    low = networks.residual < rank.ALIKE
    flagged = networks[networks.flagged & (low | (networks["flags"] != "rank-kept"))].says
    between = networks[~low & (networks.residual < 0.5)]
    fails = [(len(part), (part.before < 0.5).sum()) for part in (networks[low], between)]
    assert fails == [(21, 17), (20, 2)]
    assert (
        (flagged == "helps").sum(),
        (flagged == "harms").sum(),
        len(flagged),
    ) == (rank.HELPED, rank.HARMED, rank.FLAGGED)


def test_null_models_by_regression():
    table, _, limits = read("warning")
    details = warning_analysis.details(table, limits)
    flagged = details["outcomes"].query("flagged and placement in ('post', 'pre', 'peri')")
    flagged = flagged.assign(learns=flagged.before >= 0.5)
    for columns, explained in zip((["placement", "depth"], ["learns"]), details["null"].explained):
        flags = flags_of(flagged, columns)
        r2 = LinearRegression(fit_intercept=False).fit(flags, flagged.effect).score(flags, flagged.effect)
        assert explained == pytest.approx(1 - (1 - r2) * (len(flags) - 1) / (len(flags) - flags.shape[1]))
    table, _, _ = read("cause")
    base = table[table.arm == "base"]
    flags = flags_of(base, cause_analysis.NETWORK)
    r2 = LinearRegression(fit_intercept=False).fit(flags, base.score).score(flags, base.score)
    assert cause_analysis.share_explained(table) == pytest.approx(r2)


def test_counts_that_the_page_states():
    """Recompute counts and ranges that docs/causes.md quotes outside the tables of verdicts."""
    table, _, limits = read("warning")
    details = warning_analysis.details(table, limits)
    counts = details["counts"].set_index(["flagged", "learns"])
    assert details["learn"].set_index(["flagged", "learns"])["sum"][True, False] == 11
    assert [counts.loc[(True, learns)].sum() for learns in (False, True)] == [19, 12]
    assert [counts.helps[True, learns] for learns in (False, True)] == [18, 1]
    assert counts.loc[(False, False)].sum() == counts.helps[False, False] == 5 and counts.helps[False, True] == 0
    networks = details["outcomes"]
    harmed = networks[networks.says == "harms"]
    assert set(harmed.change) == {"weights of the layers times 2"} and harmed.effect.round(2).tolist() == [-0.57, -0.47]
    fails = networks[~networks.placement.isin(warning.TYPES) & (networks.before < 0.5)]
    left = fails[~fails.flagged | (fails.after < 0.5)]
    assert set(left.gain) == {3.0} and left.flagged.sum() == 8 and set(left[~left.flagged].depth) == {2}
    quartered = table.groupby(WARNED).quartered.mean().rename("quartered").reset_index()
    flagged = fails[fails.flagged].merge(quartered)
    for part, learn in ((flagged[flagged.change != warning.QUARTER], [13, 5, 3]), (flagged, [19, 11, 9])):
        assert [len(part), (part.after >= 0.5).sum(), (part.quartered >= 0.5).sum()] == learn
    table, _, limits = read("cause")
    details = cause_analysis.details(table, limits)
    fails = details["fails"]
    fails = fails.assign(group=fails.placement.where(fails.skip == 1, fails.skip.astype(str)).replace({"peri": "pre"}))
    counts = fails.groupby(["group", "depth"])[["sum", "size"]].sum()
    for group, stated in (
        ("0.0", [[1, 12], [12, 12], [12, 12]]),
        ("0.5", [[0, 4], [4, 4]]),
        ("post", [[1, 4], [2, 4], [4, 4]]),
        ("pre", [[0, 8], [0, 8], [0, 8]]),
    ):
        assert counts.loc[group].to_numpy().tolist() == stated
    arms = details["arms"].set_index(["failing", "arm"])
    networks = arms.loc[True].loc[["sham", "up"], ["networks", "rescued", "broken"]]
    assert networks.to_numpy().tolist() == [[108, 1, 2], [108, 3, 0]]
    base, trains = table[table.arm == "base"], table.score >= limits["trains"]
    low = base.residual_step_50 < 1e-3
    assert [low.sum(), (low & trains[base.index]).sum(), (~low & trains[base.index]).sum()] == [97, 1, 132]
    deep = (table.skip == 0) & (table.depth > 2)
    assert deep.sum() == 72 * 14 and not trains[deep].any()
    table, _, limits = read("scale")
    post = table.place == "after the addition"
    curve = scale_analysis.curve
    assert curve(table[table.type != "nomic_bert"], "post").mean == pytest.approx(0.98, abs=0.005)
    assert curve(table[table.gain <= 1.5], "post").mean == pytest.approx(0.97, abs=0.005)
    last = table[post & (table.gain == 5)]
    nomic = last[last.type == "nomic_bert"].kept
    assert (nomic > 1.4).sum() == 12 and len(nomic) == 18 and nomic.max() < 2.1
    assert last[last.type != "nomic_bert"].kept.max() == pytest.approx(0.35, abs=0.005)
    small = (table.entering == 0.02) & (table.depth == 24)
    for types, explained, kept in (
        (("cohere", "llama", "qwen3", "stablelm"), 0.98, (0.37, 0.99)),
        (("gpt2", "gptj", "gpt_neox", "opt", "phi"), 0.95, (0.37, 0.57)),
        (("megatron-bert", "roberta-prelayernorm"), 0.98, (0.03, 0.46)),
    ):
        group = table[table.type.isin(types)]
        assert curve(group, "pre").mean == pytest.approx(explained, abs=0.005)
        means = group[small[group.index]].groupby("gain").kept.mean()
        assert (means[0.5], means[5.0]) == pytest.approx(kept, abs=0.005)
    means = table[post & (table.gain == 0.5)].groupby(["width", "depth"]).kept.mean().round(2)
    assert means[32].to_list() == [0.96, 0.84, 0.54, 0.18] and means[128].to_list() == [0.93, 0.68, 0.39]
    kept = table[post & (table.gain == 0.3)].groupby(["type", "depth"]).kept.min()
    assert kept.idxmin() == ("nomic_bert", 96) and kept.nsmallest(2).round(2).to_list() == [0.55, 0.78]
    rise = scale_analysis.change(table, "behind", 0.15, 5.0).sort_values()
    assert (rise[:3] < 0.1).all() and (rise[3:] > 0.26).all() and set(rise.index[3:]) == {"afmoe", "gemma2", "glm4"}
    assert (scale_analysis.place_of(table) == "pre").sum() == 198 * 8
    pre = table[scale_analysis.place_of(table) == "pre"].pivot_table(
        index=["type", "width", "depth", "entering"], columns="gain", values="kept"
    )
    assert (pre[5.0] > pre[1.5]).all()
