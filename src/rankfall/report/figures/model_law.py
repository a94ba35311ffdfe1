"""The law of collapse on real weights: log10 of -log10 residual against layer, where a cubic law is a straight line of slope log10 3."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.report.figures.models import COLOUR, short
from rankfall.report.selection import left_out
from rankfall.report.style import Picture, canvas

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["model_law"]
FLOORS = {"float64": 16, "float32": 7}  # decimal digits, about


def model_law(read: "Callable[[str], DataFrame]", *, variants: list[str] = []) -> Picture:
    """Medians over seeds and samples; the values of an ordinary float64 pass are drawn too, which stay at their floor. `variants`: which
    ones, in order; all that were measured, unless named."""
    import numpy as np

    whole = read("model_law")
    measured = [name for name in COLOUR if name in set(whole.variant)]
    if not measured:
        raise RankfallError(
            "figure model_law: nothing was measured: no model of the run has layers that the law can be computed for"
        )
    for name in variants:
        if name not in measured:
            raise RankfallError(f"figure model_law: variant {name} was not measured; there is: {', '.join(measured)}")
    variants = variants or measured
    table = whole[whole.variant.isin(variants)]
    table = table.assign(direct=np.log10(table.direct.clip(lower=1e-300)))
    groups = sorted(table[["model", "phase"]].drop_duplicates().itertuples(index=False, name=None))
    figure, axes = canvas(1, len(groups), 3.3 * len(groups) + 0.3, 3.0, sharey=True)
    findings = []
    for panel, (model, phase) in zip(axes[0], groups):
        part = table[(table.model == model) & (table.phase == phase)]
        for variant in variants:
            colour = COLOUR[variant]
            lines = part[part.variant == variant].groupby("layer")[["log10_residual", "direct", "exponent"]].median()
            shown = lines.where(lines.log10_residual < -0.05)  # and no line across layers that have no place
            panel.plot(shown.index, np.log10(-shown.log10_residual), color=colour, marker="o", label=variant)
            direct = lines.where((lines.direct > -299) & (lines.direct < -0.05))
            panel.plot(direct.index, np.log10(-direct.direct), color=colour, linewidth=0.8, linestyle=":")
            low = lines[(lines.log10_residual < -2) & lines.exponent.notna()]
            if len(low):
                end, depth = lines.log10_residual.iloc[-1], int(lines.index.max())
                pace = low.exponent.median()
                findings.append(
                    f"{short(model)} {phase} {variant}: 10^{end:.0f} after {depth} layers, local exponent {pace:.2f} once below 0.01."
                )
        _slope(panel, part)
        for name, digits in FLOORS.items():
            panel.axhline(np.log10(digits), color="#999999", linewidth=0.6)
            panel.text(
                0.02, np.log10(digits), f"{name} ends", fontsize=6.5, va="bottom", transform=panel.get_yaxis_transform()
            )
        panel.set_title(f"{short(model)}, {phase}")
        panel.set_xlabel("layer")
    axes[0][0].set_ylabel("log10 of -log10 residual")
    axes[0][0].legend(fontsize=7.5, loc="upper left")
    caption = (
        "Residuals by centred propagation (solid) and by an ordinary float64 pass (dotted). A cubic law, res' = C res^3, is a "
        "line of the grey slope; residuals above 0.9 have no place on this axis. "
        + left_out(whole, table, ("variant",))
        + " ".join(findings)
    )
    return Picture(figure, caption)


def _slope(panel, table: "DataFrame") -> None:  # type: ignore[no-untyped-def]
    """A line of slope log10 3 through the last point of the lowest curve."""
    import numpy as np

    ends = table[table.layer == table.layer.max()].groupby("variant").log10_residual.median()
    if ends.empty or ends.min() >= -1:
        return
    end, top = int(table.layer.max()), float(np.log10(-ends.min()))
    start = max(0, end - 3)
    panel.plot([start, end], [top - (end - start) * np.log10(3) + 0.15, top + 0.15], color="#888888", linewidth=1.0)
