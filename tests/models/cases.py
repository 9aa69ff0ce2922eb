"""The list of a file of small models, and the decorator that fills it."""


def collect():
    """(cases, case): `@case(call, …)` over a model adds (class, calls) to cases; a call is the arguments of forward, or
    the only one."""
    cases = []

    def case(*calls):
        def add(model):
            cases.append((model, [call if isinstance(call, tuple) else (call,) for call in calls]))
            return model

        return add

    return cases, case
