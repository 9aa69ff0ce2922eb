"""`python -m tensord` against a real daemon."""

import argparse
import json
import os
import re
import subprocess

import numpy as np
import pytest

from tensord.__main__ import main
from tensord._commands import train
from tensord.job_spec import job_spec_message


@pytest.fixture()
def command(server, capsys):
    def run(*arguments, code=0):
        try:
            returned = main([*arguments, "--address", server.ready["grpc"]])
        except SystemExit as stopped:  # raised by argparse
            returned = stopped.code
        out = capsys.readouterr()
        assert returned == code, out.err
        return out.out if code == 0 else out.err

    return run


def objects(output):
    return [json.loads(line) for line in output.splitlines()]


def test_infer(command, tmp_path):
    ones = json.dumps([[1] * 16])
    (answer,) = objects(command("infer", "simple", "--input", ones, "--input", ones, "--json"))
    assert answer == {"model": "simple", "version": "1", "outputs": {"OUTPUT0": [[2] * 16], "OUTPUT1": [[0] * 16]}}
    np.savez(tmp_path / "in.npz", INPUT0=np.ones((1, 16), "i4"), INPUT1=np.ones((1, 16), "i4"))
    command("infer", "simple", "--input", str(tmp_path / "in.npz"), "--save", str(tmp_path / "out.npz"),
            "--output", "OUTPUT0")
    with np.load(tmp_path / "out.npz") as saved:
        assert list(saved) == ["OUTPUT0"] and (saved["OUTPUT0"] == 2).all()
    np.save(tmp_path / "x.npy", np.array([[1.5, 2.5]], "f4"))
    assert "[[1.5 2.5]]" in command("infer", "identity_fp32", "--input", f"INPUT0={tmp_path / 'x.npy'}")
    assert "float32[2, 3]" in command("infer", "identity_fp32", "--input", "random:2,3")
    assert "banana 9" in command("infer", "labelled_identity", "--input", "INPUT0=[[1, 9, 2, 3]]", "--classes", "2")
    assert "'text'" in command("infer", "simple_identity", "--input", '[["text"]]')
    (tmp_path / "in.json").write_text('[["a", "b"]]')
    (answer,) = objects(command("infer", "simple_identity", "--input", str(tmp_path / "in.json"), "--parameter", "priority=1",
                                "--parameter", "note=text", "--json"))
    assert list(answer["outputs"].values()) == [[["a", "b"]]]
    (tmp_path / "word").write_text("a=b")
    for value in ("text:a=b", f"@{tmp_path / 'word'}"):
        (answer,) = objects(command("infer", "simple_identity", "--input", value, "--json"))
        assert list(answer["outputs"].values()) == [[["a=b"]]]
    command("infer", "simple_identity", "--input", "text:ab", "--save", str(tmp_path / "text.npy"))
    assert np.load(tmp_path / "text.npy").tolist() == [[b"ab"]]
    (answer,) = objects(command("infer", "simple", "--input", "INPUT1=random", "--random", "--json"))
    assert np.shape(answer["outputs"]["OUTPUT0"]) == (1, 16)
    streamed = objects(command("infer", "square_int32", "--input", "[3]", "--stream", "--json"))
    assert [item["outputs"]["OUT"] for item in streamed] == [[3]] * 3


@pytest.mark.parametrize("arguments, message, code", [
    (("infer", "nope", "--input", "x=[1]"), "nope", 1), (("infer", "simple", "--input", "{"), "neither", 2),
    (("infer", "simple", "--input", "[1]", "--input", "INPUT0=[1]"), "name all", 2), (("nope",), "invalid choice", 2),
    (("infer", "simple", "--input", "random:a"), "shape is numbers", 2),
    (("bench", "simple", "--clients", "0"), "--clients", 2),
    (("load", "simple", "--file", "x"), "PATH_IN_MODEL=FILE", 2), (("load", "nope"), "nope", 1),
    (("infer", "simple", "--random", "--save", "x.npy"), "holds one output", 2),
    (("infer", "simple", *["--input", "[1]"] * 3), "2 inputs", 2),
    (("infer", "simple", "--parameter", "x"), "NAME=VALUE", 2),
    (("train", "simple"), "TrainingService|raining", 1), (("load", "m", "--config", "/not/there"), "/not/there", 1),
])
def test_wrong_ones(command, arguments, message, code):
    assert re.search(message, command(*arguments, code=code))


def test_a_server_that_does_not_answer(capsys):
    assert main(["models", "--address", "127.0.0.1:1"]) == 3
    assert "UNAVAILABLE" in capsys.readouterr().err


def test_models(command):
    assert "simple_int8" in command("models") and "READY" in command("models", "--ready")
    command("unload", "simple_int8")
    states = {item["name"]: item["state"] for item in objects(command("models", "--json"))}
    assert states["simple"] == "READY" and states["simple_int8"] != "READY"
    assert command("load", "simple_int8") == "simple_int8: loaded\n"
    assert command("load", "simple", "--label", "stable=1") == "simple: loaded\n"
    assert command("models", "label", "simple", "stable=") == "simple: stable=\n"
    assert "MEAN MS" in command("models", "--statistics")


def test_bench(command):
    (row, more) = objects(command("bench", "simple", "--clients", "1,2", "--seconds", "0.2", "--json"))
    assert row["clients"] == 1 and row["requests"] > 0 and row["median_ms"] <= row["p99_ms"]
    assert more["requests_per_second"] > 0
    assert "MEDIAN MS" in command("bench", "identity_fp32", "--input", "random:4,4", "--seconds", "0.1")


def test_train_and_jobs(trainer, capsys, tmp_path):
    def run(*arguments, code=0):
        assert main([*arguments, "--address", trainer.address]) == code
        return capsys.readouterr().out

    spec = tmp_path / "job.json"
    spec.write_text(json.dumps({"loss": {"builtin": "cross_entropy"}, "optimizer": {"lr": 1.0}, "epochs": 9}))
    flags = ("train", "shapes", "--spec", str(spec), "--data", "images.npz", "--label", "label", "--steps", "3",
             "--lr", "0.01", "--eval-fraction", "0.2", "--metrics", "loss,accuracy", "--freeze", "blocks.0.*")
    report = run(*flags)
    assert "COMPLETED" in report and "accuracy" in report
    updates = objects(run(*flags, "--json"))
    job = updates[-1]["job"]
    assert job["state"] == "COMPLETED" and job["progress"]["step"] == 3 and job["spec"]["optimizer"]["lr"] == 0.01
    assert job["spec"]["optimizer"]["groups"] == [{"pattern": "blocks.0.*", "freeze": True}]
    assert [point["step"] for update in updates for point in update["points"]][-1] == 3
    job_id = run(*flags[:-2], "--steps", "1000000", "--detach").strip()
    assert job_id in run("jobs", "list", "--model", "shapes")
    assert job_id in run("jobs", "pause", job_id)
    assert run("jobs", "watch", job_id).count("PAUSED") == 1
    assert json.loads(run("jobs", "show", job_id, "--json"))["id"] == job_id
    run("jobs", "resume", job_id)
    run("jobs", "cancel", job_id)
    run("jobs", "delete", job_id)
    assert job_id not in run("jobs", "list")
    uploaded = run("train", "--upload", str(trainer.models / "shapes" / "1" / "model.pt"), *flags[2:])
    assert "COMPLETED" in uploaded
    assert main(["jobs", "rollback", "nope", "--address", trainer.address]) == 1
    capsys.readouterr()


def test_train_has_the_flags_of_the_binary():
    parser = argparse.ArgumentParser()
    train.add_to(parser.add_subparsers())
    command = parser._subparsers._group_actions[0].choices["train"]
    ours = {flag for action in command._actions for flag in action.option_strings if flag.startswith("--")}
    help_text = subprocess.run([os.environ["TENSORD_BINARY"], "train", "--help"], capture_output=True, text=True, check=True).stdout
    theirs = set(re.findall(r"^  (?:-h,)?(--[a-z0-9-]+)", help_text, re.M))
    assert ours == theirs - {"--attach", "--list-optimizers"}
    # Each has a field of a job.
    samples = {bool: [], int: ["2"], float: ["0.5"], str: ["x"], train._texts: ["x,y"], train._numbers: ["1,2.5"]}
    arguments = [text for flag, _, kind, _ in train._FLAGS for text in (flag, *samples[kind])]
    given = parser.parse_args(["train", "m", "--tag", "team=vision", "--freeze", "a.*", *arguments])
    fields = train.job_fields(given)
    message = job_spec_message(fields.pop("model"), **fields)
    assert (message.optimizer.options["tolerance_grad"], message.optimizer.nesterov, message.precision) == (0.5, True, "x")
    assert (list(message.loss.class_weights), list(message.activation_checkpointing), dict(message.tags)) == ([1, 2.5], ["x", "y"], {"team": "vision"})


def test_help_of_all_commands(capsys):
    for arguments in ([], ["infer"], ["models"], ["load"], ["unload"], ["train"], ["jobs"], ["jobs", "watch"],
                      ["bench"]):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--help"])
        assert stopped.value.code == 0 and "usage:" in capsys.readouterr().out
