"""Loads states that tensord's optimizers saved after 50 steps into PyTorch's optimizers, and compares them with
PyTorch's own.

Usage: python3 -m tests.nn.check_states CASES_FOLDER STATES_FOLDER
"""

import pathlib
import sys

import torch


def main(cases, states):
    for number, case in enumerate(torch.load(pathlib.Path(cases) / "optimizers.pt")):
        params = [p.clone().requires_grad_() for p in case["start"]]
        groups = [{"params": params[:2]}, {"params": params[2:], **case["second"]}]
        optimizer = getattr(torch.optim, case["kind"])(groups, **case["options"])
        optimizer.load_state_dict(torch.load(pathlib.Path(states) / f"{number}.pt"))
        got, expected = optimizer.state_dict(), case["state"]
        assert got["state"].keys() == expected["state"].keys(), case["kind"]
        for key, state in expected["state"].items():
            assert got["state"][key].keys() == state.keys(), (case["kind"], state.keys(), got["state"][key].keys())
            for name, value in state.items():
                torch.testing.assert_close(got["state"][key][name], value, rtol=2e-5, atol=2e-5)
        for mine, theirs in zip(got["param_groups"], expected["param_groups"]):
            for name, value in mine.items():
                assert theirs[name] == value, (case["kind"], name)
        for p in params:
            p.grad = torch.ones_like(p)
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
