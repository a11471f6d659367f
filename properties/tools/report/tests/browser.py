# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over a pipe (its DevTools protocol): needs no package but the browser."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# Nothing may be reached, and the browser asks for nothing of its own.
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
           "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"]
PATIENCE = 60  # seconds for an answer


def program():
    """The browser of $CHROMIUM, or of the path; None where there is none."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


def high(descriptor):
    """A copy above the numbers that the browser wants, which is not inherited."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


class Browser:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="assay-browser-")
        out, self.to = map(high, os.pipe())
        self.back, into = map(high, os.pipe())
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2)]
        self.pid = os.posix_spawn(path, [path, *OPTIONS, f"--user-data-dir={self.profile}"], os.environ, setsid=True, file_actions=[
            *quiet, (os.POSIX_SPAWN_DUP2, out, 3), (os.POSIX_SPAWN_DUP2, into, 4)])
        os.close(out), os.close(into)
        self.last, self.rest, self.events = 0, b"", []

    def close(self):
        os.close(self.to), os.close(self.back)
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self):
        """The next message."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.back, 1 << 20)
            if not part:
                raise ConnectionError("the browser has ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The answer to one call; events that come meanwhile are kept."""
        self.last += 1
        order = {"id": self.last, "method": method, "params": parameters}
        if session:
            order["sessionId"] = session
        os.write(self.to, json.dumps(order).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def wait_for(self, method):
        while not any(event["method"] == method for event in self.events):
            message = self.read()
            if "method" in message:
                self.events.append(message)


class Page:
    """One file, in a tab of its own."""

    def __init__(self, browser, path, width=1280):
        self.browser, self.path = browser, path
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.view(width, False)
        browser.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        browser.wait_for("Page.loadEventFired")

    def view(self, width, dark):
        """As a reader of that width and colour scheme sees it."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def ask(self, script):
        """The value of an expression, or of a function's body."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", "script failed"))
        return result["result"].get("value")

    def complaints(self):
        """What a console shows: errors, warnings, and scripts that threw."""
        found = []
        for event in self.browser.events:
            of = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(of["exceptionDetails"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and of["type"] in ("error", "warning", "assert"):
                found.append(str(of["args"]))
            if event["method"] == "Log.entryAdded" and of["entry"]["level"] in ("error", "warning"):
                found.append(of["entry"]["text"])
        return found

    def requests(self):
        """Addresses that the page asked for, itself aside. Data in the page is no request."""
        asked = [event["params"]["request"]["url"] for event in self.browser.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if url != self.path.as_uri() and not url.startswith("data:")]

    def picture(self, path):
        size = self.ask("[document.documentElement.clientWidth, Math.min(document.documentElement.scrollHeight, 12000)]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Page.close")
