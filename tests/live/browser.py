# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, spoken to through its debugging pipe: no port, no driver, no package."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "about:blank")


class BrowserFailed(Exception):
    pass


class Browser:
    """One page. What its console says, what it fetches and what it throws is kept."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="tidemark-browser-")
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()
        # The pipe is descriptors 3 and 4 of the browser; a shell puts them there.
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", CHROMIUM,
             f"--user-data-dir={self.profile.name}", *FLAGS],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.held, self.count, self.session = b"", 0, None
        self.said, self.fetched, self.seen = [], [], set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:  # its helpers, should one be left; the group is of our making
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.of)
        self.profile.cleanup()

    def receive(self):
        while b"\0" not in self.held:
            more = os.read(self.of, 1 << 20)
            if not more:
                raise BrowserFailed("the browser has ended")
            self.held += more
        message, self.held = self.held.split(b"\0", 1)
        message = json.loads(message)
        self.note(message.get("method"), message.get("params"))
        return message

    def note(self, method, params):
        if method:
            self.seen.add(method)
        if method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.fetched.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.said.append("dialog: " + params["message"])

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise BrowserFailed(f"{method}: {answer['error']}")
                return answer["result"]

    def show(self, width, height=800, dark=False, media="screen"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, script=True):
        self.said, self.fetched = [], []
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.seen.discard("Page.loadEventFired")
        failed = self.call("Page.navigate", url="file://" + os.path.abspath(path)).get("errorText")
        if failed:
            raise BrowserFailed(f"{path}: {failed}")
        while "Page.loadEventFired" not in self.seen:
            self.receive()

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserFailed(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, path, top=0, height=None):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def pdf(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))
