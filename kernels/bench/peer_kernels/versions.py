# SPDX-License-Identifier: Apache-2.0
"""What the installed version of a peer takes."""
import inspect


def taken(function, **options):
    """Those of the options that `function` takes: FlashInfer 0.7.2, as released, plans without the hint uniform_q_len."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return options
    names = {p.name for p in parameters}
    return {name: value for name, value in options.items() if name in names}
