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


MISSING = "" if CHROMIUM else "chromium"
# A key is its name and its number; a letter or digit is itself.
TAB, ENTER, BACKSPACE = ("Tab", 9, ""), ("Enter", 13, "\r"), ("Backspace", 8, "")
SHIFT = 8  # of the modifiers


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

    def open(self, place, script=True):
        """A URL, or the path of a file."""
        self.said, self.fetched = [], []
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.seen.discard("Page.loadEventFired")
        url = place if "://" in place else "file://" + os.path.abspath(place)
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserFailed(f"{place}: {failed}")
        while "Page.loadEventFired" not in self.seen:
            self.receive()

    def evaluate(self, script, arguments, **options):
        expression = f"(function() {{ {script} }}).apply(null, {json.dumps(arguments)})"
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in answer:
            raise BrowserFailed(f"{script}: {answer['exceptionDetails']}")
        return answer["result"]

    def run(self, script, *arguments):
        """The script's result; it is the body of a function."""
        return self.evaluate(script, arguments, returnByValue=True).get("value")

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def spoken(self, script, *arguments):
        """What a screen reader knows of the element that the script returns: its role and its name."""
        element = self.evaluate(script, arguments)["objectId"]
        node = self.call("Accessibility.getPartialAXTree", objectId=element, fetchRelatives=False)["nodes"][0]
        return node["role"]["value"], node.get("name", {}).get("value", "")

    def focused(self):
        return self.spoken("return document.activeElement")[1]

    def role(self, selector):
        return self.spoken("return document.querySelector(arguments[0])", selector)[0]

    def press(self, *keys, holding=0):
        """Keys to whatever has the focus."""
        for key in keys:
            name, number, text = key if isinstance(key, tuple) else (key, ord(key), key)
            held = {"key": name, "windowsVirtualKeyCode": number, "modifiers": holding}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **held)
            self.call("Input.dispatchKeyEvent", type="keyUp", **held)

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
