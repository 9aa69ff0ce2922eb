import signal

# A script that runs the tests in the background makes them, and their children, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
