import os

# A failing pass ends the programs that tests start, with a message (core/jit/passes/pipeline.h).
os.environ.setdefault("TENSORD_VERIFY_PASSES", "1")
