# SPDX-License-Identifier: Apache-2.0
"""The environment of verifiers_decode.py for `verifiers.v1`: a taskset, with both files on the path of Python."""
import functools

import verifiers.v1 as vf
from verifiers_decode import Judges, Limits, code_of, judged, prompt


class DecodeConfig(vf.TasksetConfig):
    shape: str = ""
    fields: dict = {}  #: others of a line of `judge-callable --batch`: like, assume, device, ...


class DecodeData(vf.TaskData):
    asked: dict


@functools.cache
def _judges():
    return Judges(1, Limits(load_seconds=120, call_seconds=20, gigabytes=8))


class DecodeTask(vf.Task[DecodeData]):
    @vf.reward
    async def score(self, trace: vf.Trace) -> float:
        said = await judged(_judges(), code_of(trace.last_reply), self.data.asked)
        return said.get("score", 0.0)


class DecodeTaskset(vf.Taskset[DecodeTask, DecodeConfig]):
    def load(self):
        asked = {"shape": self.config.shape, **self.config.fields}
        return [DecodeTask(DecodeData(idx=0, prompt=prompt(self.config.shape), asked=asked), self.config.task)]


__all__ = ["DecodeTaskset"]
