import signal

# Whoever runs the tests in the background of a script makes them, and their children, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
