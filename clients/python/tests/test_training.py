"""Training jobs against a real daemon."""

import pathlib
import sys
import threading
import zipfile

import numpy as np
import pytest

import tensord
from conftest import Trainer, labeled_images
from tensord import _job_operations
from tensord import job_spec as specs
from tensord._data_files import as_job_file
from tensord._protocol import training as pb
from tensord.job_spec import JobSpec, job_spec_message
from tensord.jobs import history_of

PYARROW = pathlib.Path(__file__).resolve().parents[3] / "build" / "pyarrow"  # scripts/setup test
QUICK = {"data": "images.npz", "loss": "cross_entropy", "label": "label", "lr": 3e-3, "batch_size": 16}


class Bar:
    """The part of tqdm's bars that the tests inspect."""

    made = []

    def __init__(self, total, initial, desc, unit):
        self.total, self.n, self.desc, self.is_closed, self.texts = total, initial, desc, False, []
        Bar.made.append(self)

    def update(self, count):
        self.n += count

    def set_postfix(self, values, refresh):
        self.texts.append(values)

    def close(self):
        self.is_closed = True


def test_from_job_to_the_next_version(training_client, trainer):
    client = training_client
    before = client.infer("shapes", labeled_images(4)["image"])
    evaluation = {"fraction": 0.25, "metrics": ["loss", "accuracy"]}
    job = client.train("shapes", name="mine", epochs=3, seed=1, evaluation=evaluation,
                       publish="at_end", optimizer="adamw", schedule="cosine", **QUICK)
    assert job.info.name == "mine" and job.info.spec["optimizer"] == {"name": "adamw", "lr": 3e-3}
    info = job.wait(progress=Bar, timeout=120)
    assert info.state == tensord.JobState.COMPLETED and info.progress.step == info.progress.total_steps == 15
    assert info.published_version == 2 and info.spec["batch_size"] == 16 and info.created_at <= info.updated_at
    (bar,) = Bar.made
    assert (bar.n, bar.total, bar.desc, bar.is_closed) == (15, 15, "mine", True) and "eval_accuracy" in bar.texts[-1]

    history = job.history()
    assert history["step"].tolist() == list(range(1, 16)) and len(history["loss"]) == 15
    steps, accuracy = history.evaluations("accuracy")
    assert steps.tolist() == [5, 10, 15] and ((0 <= accuracy) & (accuracy <= 1)).all()
    assert history["loss"][-3:].mean() < history["loss"][:3].mean()

    after = client.infer("shapes", labeled_images(4)["image"])
    assert (before.version, after.version) == ("1", "2") and not np.array_equal(before.output, after.output)
    assert client.rollback("shapes") == 1 and client.infer("shapes", labeled_images(1)["image"]).version == "1"
    job.delete()
    with pytest.raises(tensord.NotFoundError):
        client.job(job.id)


def test_a_table_of_the_history(training_client):
    pandas = pytest.importorskip("pandas")
    job = training_client.train("shapes", steps=4, **QUICK)
    job.wait(timeout=60)
    table = pandas.DataFrame(job.history())
    assert list(table.step) == [1, 2, 3, 4] and table.loss.notna().all()


def test_pause_resume_cancel(training_client):
    client = training_client
    job = client.train("shapes", steps=100000, **QUICK)
    for update in job.watch():
        if update.points:
            break
    job.pause()
    assert job.wait(timeout=60).state == tensord.JobState.PAUSED
    step = job.info.progress.step
    assert 0 < job.history()["step"][-1] <= step
    job.resume()
    for update in job.watch(timeout=60):
        if update.info.progress.step > step:
            break
    with pytest.raises(tensord.DeadlineExceededError, match="still RUNNING"):
        job.wait(timeout=0.3)
    assert job.id in {info.id for info in client.jobs("shapes", [tensord.JobState.RUNNING])}
    job.cancel()
    with pytest.raises(tensord.JobFailedError, match="CANCELLED") as caught:
        job.wait(timeout=60)
    assert caught.value.job_id == job.id
    assert job.wait(check=False).state == tensord.JobState.CANCELLED and "CANCELLED" in repr(job)
    job.delete()


def test_streamed_data_goes_on_where_it_stopped(training_client):
    job = training_client.train("shapes", data={"streamed": True}, loss={"builtin": "cross_entropy", "label": "label"})
    assert job.feed((labeled_images(8, number) for number in range(3)), complete=False) == 3
    # The same data once more: the job has had three of it.
    assert job.feed(labeled_images(8, number) for number in range(5)) <= 5
    assert job.wait(timeout=60).progress.step == 5 and job.info.progress.samples == 40


def test_what_batches_raise_comes_out(training_client):
    job = training_client.train("shapes", data={"streamed": True}, loss="cross_entropy", label="label")

    def broken():
        yield labeled_images(4)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        job.feed(broken())
    with pytest.raises(tensord.InvalidArgumentError, match="strings"):
        job.feed([{"image": np.array(["a"])}], first=job.refresh().progress.next_batch)
    job.cancel()


def test_uploads(training_client, trainer):
    path = trainer.models / "shapes" / "1" / "model.pt"
    for archive in (path, path.read_bytes()):
        job = training_client.train({"upload_id": training_client.upload(archive)}, steps=1, **QUICK)
        assert job.wait(timeout=60).state == tensord.JobState.COMPLETED
    with pytest.raises(tensord.DataLossError, match="zip archive"):
        training_client.upload(b"no archive")


@pytest.mark.parametrize("fields, error", [
    ({"lr": -1.0}, "lr"), ({"loss": "nope"}, "nope"), ({"optimizer": {"name": "adam", "nope": 1}}, "nope"),
    ({"epochs": "three"}, "epochs"), ({"nope": 1}, "nope"), ({"data": "../secret.npz"}, "secret"),
])
def test_wrong_jobs(training_client, fields, error):
    with pytest.raises(tensord.TensordError, match=error):
        training_client.train("shapes", **{"steps": 1, **QUICK, **fields})


def test_a_job_outlives_its_daemon(tmp_path):
    # An address that the next daemon has too, unlike its port.
    socket = ("--grpc-unix-socket", str(tmp_path / "socket"))
    trainer = Trainer(tmp_path).start(*socket)
    with tensord.Client("unix:" + socket[1]) as client:
        job = client.train("shapes", steps=100000, checkpoints={"every_steps": 10}, **QUICK)
        for update in job.watch():
            if update.info.progress.step > 20:
                break
        states = []
        watching = threading.Thread(target=lambda: states.append(job.wait(timeout=60, check=False).state))
        watching.start()
        trainer.daemon.kill()
        trainer.start(*socket)
        with tensord.Client(trainer.address) as again:
            again.job(job.id).cancel()
        watching.join(60)
    trainer.daemon.__exit__()
    assert states == [tensord.JobState.CANCELLED]


def test_fields_are_those_of_the_protocol():
    assert set(JobSpec.__annotations__) == {field.name for field in pb.JobSpec.DESCRIPTOR.fields} - {"model"} | {
        "label", "lr"}
    for name, message in (("Data", "Data"), ("Loss", "Loss"), ("Optimizer", "Optimizer"), ("Schedule", "Schedule"),
                          ("ParameterGroup", "ParameterGroup"), ("Clipping", "Clipping"), ("Evaluation", "Evaluation"),
                          ("Checkpoints", "CheckpointPolicy"), ("Publish", "PublishPolicy"),
                          ("Resources", "Resources"), ("ModelSource", "ModelSource")):
        fields = {field.name for field in getattr(pb, message).DESCRIPTOR.fields}
        assert set(getattr(specs, name).__annotations__) == fields, name
    states = pb.Job.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number
    assert {number: value.name for number, value in states.items()} == {
        int(state): f"JOB_STATE_{state.name}" for state in tensord.JobState}
    # Formatted as words in every version of Python.
    assert [str(tensord.JobState.RUNNING), f"{tensord.JobState.PAUSED}", f"{tensord.JobState.PAUSED:>7}|"] == [
        "RUNNING", "PAUSED", " PAUSED|"]
    assert f"{tensord.JobState.RUNNING:d}" == "2"


def test_short_forms():
    message = job_spec_message("m", data="d.npz", loss={"method": "step"}, label="y", lr=0.5, optimizer="sgd",
                               evaluation="e.npz", schedule="cosine", publish="best")
    assert message.data.file == "d.npz" and message.loss.method == "step" and message.loss.label == "y"
    assert (message.optimizer.name, message.optimizer.lr) == ("sgd", 0.5)
    assert (message.evaluation.file, message.schedule.name, message.publish.when) == ("e.npz", "cosine", "best")
    assert job_spec_message("m", lr=0.5, optimizer={"lr": 0.25}).optimizer.lr == 0.25


def test_a_step_that_comes_again_with_its_evaluation():
    def point(step, **metrics):
        return tensord.Point(step, 0.0, 1.0, 0.1, 0.0, 0.0, metrics)

    history = history_of([point(2), point(1), point(2, accuracy=0.5)])
    assert history["step"].tolist() == [1, 2] and np.isnan(history["eval_accuracy"][0])
    assert history.evaluations("accuracy")[1].tolist() == [0.5]
    assert history_of([])["step"].tolist() == []


def test_uploaded_data_and_the_model_that_comes_home(training_client, trainer, tmp_path):
    name = training_client.upload_data(trainer.data / "images.npz")
    job = training_client.train("shapes", steps=2, **{**QUICK, "data": {"file": name}})
    job.wait(timeout=60)
    paths = job.download(tmp_path / "trained")
    assert paths == [str(tmp_path / "trained" / "model.pt")]
    assert training_client.upload(paths[0])  # it is an archive
    with pytest.raises(FileExistsError):
        job.download(tmp_path / "trained")
    with pytest.raises(tensord.InvalidArgumentError, match="is of no kind"):
        training_client.upload_data(__file__)
    with pytest.raises(tensord.InvalidArgumentError, match="columns"):
        training_client.upload_data(trainer.data / "images.npz", columns=["image"])
    missing = training_client.job(job.id)
    missing.info = missing.info.__class__(**{**vars(missing.info), "id": "none"})
    with pytest.raises(tensord.NotFoundError):
        missing.download(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["trained"]


def test_a_folder_of_images_is_uploaded_as_an_archive(training_client, tmp_path):
    images = {"cat/1.jpg": b"one", "cat/more/2.PNG": b"two", "dog/1.jpeg": b"three"}
    for name, content in {**images, "dog/notes.txt": b"no image", "cover.jpg": b"of no class"}.items():
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "pets" / "none").mkdir()  # a class without images, which the server refuses
    (tmp_path / "pets" / "cat" / "linked").symlink_to(tmp_path / "pets" / "cat" / "more")
    with as_job_file(tmp_path / "pets") as packed:
        with zipfile.ZipFile(packed) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
            assert found == {**images, "cat/linked/2.PNG": b"two", "cat/": b"", "dog/": b"", "none/": b""}
    assert not pathlib.Path(packed).exists()
    assert training_client.upload_data(tmp_path / "pets").endswith(".zip")
    with pytest.raises(tensord.InvalidArgumentError, match="columns"):
        training_client.upload_data(tmp_path / "pets", columns=["image"])
    (tmp_path / "pets" / "cat" / "more" / "up").symlink_to(tmp_path / "pets" / "cat")
    with pytest.raises(tensord.InvalidArgumentError, match="up: links lead in a circle"):
        training_client.upload_data(tmp_path / "pets")
    (tmp_path / "empty").mkdir()
    with pytest.raises(tensord.InvalidArgumentError, match="has no folders of images"):
        training_client.upload_data(tmp_path / "empty")


def test_a_download_without_the_end_of_a_file(tmp_path):
    def message(**fields):
        return pb.DownloadModelResponse(**fields).SerializeToString()

    for last in (message(file_name="b", data=b"2", sha256="0" * 64), None):
        download = _job_operations.Download("job", tmp_path / "out")
        download.take(message(file_name="a", data=b"1"))
        with pytest.raises(tensord.DataLossError):
            download.take(last) if last else download.finish()
        download.abandon()
        assert list(tmp_path.iterdir()) == []


def test_parquet(training_client, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(tensord.InvalidArgumentError, match="needs pyarrow"):
        training_client.upload_data(path)
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(PYARROW))
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = labeled_images(40)
    images = data["image"].reshape(40, -1).tolist()
    kind = arrow.list_(arrow.float32())
    table = arrow.table({"image": arrow.array(images, kind), "fixed": arrow.array(images, arrow.list_(arrow.float32(), 1024)), "label": data["label"],
                         "text": ["a"] * 40, "gaps": [None, *range(39)], "ragged": [[0]] + [[0, 1]] * 39, "flag": [True] * 40})
    parquet.write_table(table, path)
    with as_job_file(path) as made:
        arrays = dict(np.load(made))
    assert sorted(arrays) == ["fixed", "flag", "image", "label"]
    for name in ("image", "fixed"):
        np.testing.assert_array_equal(arrays[name], data["image"].reshape(40, -1))
    np.testing.assert_array_equal(arrays["label"], data["label"])
    assert training_client.upload_data(path, columns=["label", "image"]).endswith(".npz")
    for columns, error in ((["none"], "none"), (["text"], "text is string"), (["gaps"], "gaps"), (["ragged"], "ragged")):
        with pytest.raises(tensord.InvalidArgumentError, match=error):
            training_client.upload_data(path, columns=columns)
