"""`python -m tensord`: the client commands of the `tensord` binary, for machines that have only Python."""

from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional

from tensord import __version__
from tensord._commands import bench, infer, jobs, models, train
from tensord.errors import DeadlineExceededError, InvalidArgumentError, TensordError, UnavailableError

EXIT_FAILED, EXIT_USAGE, EXIT_UNREACHABLE = 1, 2, 3


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser("python -m tensord", description="Calls a running tensord, or Triton, over gRPC.")
    out.add_argument("--version", action="version", version=f"tensord {__version__}")
    commands = out.add_subparsers(metavar="COMMAND", required=True)
    for area in (infer, models, train, jobs, bench):
        area.add_to(commands)
    return out


def main(arguments: Optional[List[str]] = None) -> int:
    """Returns the binary's exit codes: 0 for success, 1 if the call or job failed, 2 for a usage error, 3 if the server
    is unreachable or timed out."""
    given = parser().parse_args(arguments)
    try:
        code: int = given.run(given)
        return code
    except InvalidArgumentError as error:
        print(f"tensord: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (UnavailableError, DeadlineExceededError) as error:
        print(f"tensord: {error}", file=sys.stderr)
        return EXIT_UNREACHABLE
    except (TensordError, OSError) as error:
        print(f"tensord: {error}", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:  # such as `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
