# SPDX-License-Identifier: Apache-2.0
"""A call that is captured into a CUDA graph, as engines do: its tensors stay where they are and get other bytes."""

_BEFORE = 3  #: calls before the capture, in which a function makes what it keeps


class NotCaptured(Exception):
    """The function's own error while a call of it is captured."""

    def __init__(self, error):
        while error.__context__ is not None:  # the end of a capture that failed raises once more
            error = error.__context__
        said = str(error).strip().partition("\n")[0]
        super().__init__(f"not captured: {type(error).__name__}: {said}")


class Graph:
    """A captured call. `caller` has tensors on a GPU; `tensors` are those of the call, by name."""

    def __init__(self, caller, shape, sm_scale, tensors):
        self.tensors, cuda = caller.tensors, caller.tensors.torch.cuda
        given = caller.given(shape, sm_scale, tensors)
        for _ in range(_BEFORE):
            caller.returned(given)
        self.graph = cuda.CUDAGraph()
        try:
            with cuda.graph(self.graph):
                self.results = caller.returned(given)
        except Exception as error:
            raise NotCaptured(error) from None

    def replay(self):
        """(out, lse or None), which are NaN before. So is the memory that the function gave back since the capture."""
        self.tensors.nan_in_freed()
        for tensor in self.results:
            if tensor is not None:
                tensor.fill_(float("nan"))
        self.graph.replay()
        return self.results
