"""Queries and panels of the dashboard, on Grafana's builders."""

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat, statetimeline
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
DAEMONS = 'job=~"$job",instance=~"$instance"'
MODELS = DAEMONS + ',model=~"$model",version=~"$version"'
JOBS = DAEMONS + ',job_id=~"$training_job"'
WINDOW = "[$__rate_interval]"
HEIGHT = 8
GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"


def rate(metric, by="", selector=MODELS):
    return f"sum by ({by}) (rate({metric}{{{selector}}}{WINDOW}))"


def ratio(part, whole):
    """0 if nothing happened at all: a panel without data would look like a daemon without metrics."""
    return f"{part} / ({whole} > 0) or 0 * {whole}"


def quantile(q, metric, by=""):
    """Of a histogram, classic or native."""
    classic = rate(metric + "_bucket", f"{by}, le" if by else "le")
    return f"histogram_quantile({q}, {classic}) or histogram_quantile({q}, {rate(metric, by)})"


def mean(metric, by=""):
    native = rate(metric, by)
    return (f"{rate(metric + '_sum', by)} / {rate(metric + '_count', by)}"
            f" or histogram_sum({native}) / histogram_count({native})")


def query(expr, legend="__auto"):
    return prometheus.Dataquery().datasource(SOURCE).expr(expr).legend_format(legend).range()


def now(expr, legend="__auto"):
    return prometheus.Dataquery().datasource(SOURCE).expr(expr).legend_format(legend).instant()


def with_queries(panel, queries):
    """Assigns Grafana's query letters."""
    for letter, target in zip("ABCDEFGHIJ", queries, strict=False):
        panel.with_target(target.ref_id(letter))
    return panel.datasource(SOURCE)


def steps(*colors):
    """(color), (limit, color) …: the color from each limit on."""
    first, *rest = colors
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(
        [model.Threshold(color=first)] + [model.Threshold(value=limit, color=color) for limit, color in rest])


def number(title, description, unit, target, thresholds=None, width=3):
    """One number, with its history as an area behind it."""
    panel = stat.Panel().title(title).description(description).unit(unit).height(4).span(width)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.graph_mode(common_model.BigValueGraphMode.AREA).color_mode(common_model.BigValueColorMode.VALUE)
    panel.thresholds(thresholds or steps(BLUE))
    return with_queries(panel, [target])


def lines(title, description, unit, *queries, stacked=False, log=False, width=8, most=None):
    panel = timeseries.Panel().title(title).description(description).unit(unit).height(HEIGHT).span(width)
    panel.line_width(1).fill_opacity(30 if stacked else 8).show_points(common_model.VisibilityMode.NEVER).min(0)
    panel.legend(common.VizLegendOptions().display_mode(common_model.LegendDisplayMode.LIST)
                 .placement(common_model.LegendPlacement.BOTTOM).show_legend(True).calcs([]))
    panel.tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.MULTI)
                  .sort(common_model.SortOrder.DESCENDING))
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    if log:
        panel.scale_distribution(common.ScaleDistributionConfig().type(common_model.ScaleDistribution.LOG).log(10))
    if most is not None:
        panel.max(most)
    return with_queries(panel, queries)


def heat(title, description, unit, expr, width=8):
    """Counts by bucket over time."""
    panel = heatmap.Panel().title(title).description(description).height(HEIGHT).span(width)
    panel.y_axis(heatmap.YAxisConfig().unit(unit))
    panel.color(heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Oranges")
                .scale(heatmap_model.HeatmapColorScale.EXPONENTIAL).exponent(0.5).steps(64))
    return with_queries(panel, [query(expr, "{{le}}").format(PromQueryFormat.HEATMAP)])


def bars(title, description, unit, target, width=8, most=None):
    panel = bargauge.Panel().title(title).description(description).unit(unit).height(HEIGHT).span(width).min(0)
    panel.orientation(common_model.VizOrientation.HORIZONTAL).thresholds(steps(BLUE))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if most is not None:
        panel.max(most)
    return with_queries(panel, [target])


def states(title, description, target, names, width=16):
    """A band for each series, colored and named by its value: names = {value: (name, color)}."""
    mapping = model.ValueMap(options={
        str(value): model.ValueMappingResult(text=name, color=color, index=value)
        for value, (name, color) in names.items()})
    panel = statetimeline.Panel().title(title).description(description).height(HEIGHT).span(width)
    panel.mappings([mapping]).show_value(common_model.VisibilityMode.AUTO).merge_values(True).fill_opacity(80)
    return with_queries(panel, [target])


def grid(title, description, columns, width=16):
    """A row for each set of labels; columns = [(name, unit, expression)], joined by their labels."""
    panel = table.Panel().title(title).description(description).height(HEIGHT).span(width)
    names = {"Time": True}
    renamed = {}
    for letter, (name, unit, _) in zip("ABCDEFGHIJ", columns, strict=False):
        renamed[f"Value #{letter}"] = name
        panel.override_by_name(name, [model.DynamicConfigValue(id_val="unit", value=unit)])
    panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(model.DataTransformerConfig(
        id_val="organize", options={"excludeByName": names, "renameByName": renamed, "indexByName": {}}))
    return with_queries(panel, [now(expr).format(PromQueryFormat.TABLE) for _, _, expr in columns])
