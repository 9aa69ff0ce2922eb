"""Writes tensord.json, the dashboard for Grafana 11 and newer. Run by the Python that scripts/setup test makes:

    build/clients/bin/python -m deploy.grafana.make_dashboard [--check]
"""

import json
import pathlib
import sys

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.rows import ROWS

FILE = pathlib.Path(__file__).with_name("tensord.json")


def variable(name, label, metric, of=None):
    """A dashboard variable: the values of a metric's label."""
    chosen = dashboard.QueryVariable(name).label(label).query(f"label_values({metric}, {of or name})")
    chosen.datasource(model.DataSourceRef(type_val="prometheus", uid="${datasource}"))
    chosen.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    chosen.current(model.VariableOption(text="All", value="$__all", selected=True))
    return chosen.multi(True).include_all(True).all_value(".*")


def variables():
    daemons = 'job=~"$job",instance=~"$instance"'
    return [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        variable("job", "Job", "tensord_build_info"),
        variable("instance", "Instance", 'tensord_build_info{job=~"$job"}'),
        variable("model", "Model", f"tensord_model_ready{{{daemons}}}"),
        variable("version", "Version", f'tensord_model_ready{{{daemons},model=~"$model"}}'),
        variable("training_job", "Training job", f"tensord_training_epoch{{{daemons}}}", of="job_id"),
    ]


def starts():
    """Marks the start of a daemon."""
    note = dashboard.AnnotationQuery().name("Starts").enable(True).icon_color("purple")
    note.datasource(model.DataSourceRef(type_val="prometheus", uid="${datasource}"))
    return note.expr('changes(tensord_start_time_seconds{job=~"$job",instance=~"$instance"}[1m]) > 0')


def make():
    board = dashboard.Dashboard("tensord").uid("tensord").tags(["tensord", "inference"]).editable()
    board.description("Requests, latency, batches, memory and training jobs of tensord.")
    board.time("now-1h", "now").refresh("30s").timezone("browser").tooltip(model.DashboardCursorSync.CROSSHAIR)
    board.variables(variables()).annotation(starts())
    number = 0
    for title, panels in ROWS:
        number += 1
        board.with_row(dashboard.Row(title).id(number))
        for panel in panels():
            number += 1
            board.with_panel(panel.id(number))
    return json.dumps(board.build(), cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    written = make()
    if "--check" not in sys.argv:
        FILE.write_text(written)
    elif FILE.read_text() != written:
        sys.exit(f"{FILE} is not what make_dashboard makes: run it again")
