# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests that press keys: Debian's Chromium, driven over the WebDriver protocol, which is JSON
over plain HTTP. What the page did beside (its console, its requests) comes out of the driver's logs.
"""

import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = ", ".join(package for package, found in (("chromium", CHROMIUM), ("chromium-driver", DRIVER)) if not found)
DEADLINE = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
TAB, ENTER, SHIFT, BACKSPACE = "\ue004", "\ue007", "\ue008", "\ue003"
# The browser's own traffic is none of ours; a container has no namespaces for its sandbox.
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
           "--disable-background-networking", "--disable-component-update", "--no-first-run",
           "--force-color-profile=srgb"]


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tidemark-browser-")
        self.port, self.session = None, None
        self.driver = subprocess.Popen(
            [DRIVER, "--port=0", f"--log-path={self.profile}/driver.log"], stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "HOME": self.profile})
        try:
            for line in self.driver.stdout:
                if found := re.search(r"started successfully on port (\d+)", line):
                    self.port = int(found.group(1))
                    break
            if not self.port:
                raise BrowserError("chromedriver did not start")
            self.reader = threading.Thread(target=self.driver.stdout.read, daemon=True)
            self.reader.start()
            self.open_session()
        except BaseException:
            self.close()
            raise

    def open_session(self):
        told = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"binary": CHROMIUM,
                                   "args": [*OPTIONS, f"--user-data-dir={self.profile}/profile"]}}}})
        self.session = f"/session/{told['sessionId']}"
        self.go("about:blank")  # not its own first page, which asks for a lot
        self.requests()

    def close(self):
        if self.session:
            try:
                self.ask("DELETE", self.session)  # ends the browser
            except (BrowserError, OSError):
                pass
        self.driver.terminate()
        self.driver.wait()
        if self.port:
            self.reader.join()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.request(method, path, json.dumps(body or {}) if method == "POST" else None,
                               {"content-type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError(f"{value['error']}: {value['message']}")
        return value

    def go(self, url):
        self.ask("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """The script's result; it is the body of a function."""
        return self.ask("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        found = self.ask("POST", f"{self.session}/element", {"using": "css selector", "value": selector})
        return found[ELEMENT]

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def press(self, *keys, holding=None):
        """Keys to whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if holding:
            actions = [{"type": "keyDown", "value": holding}, *actions, {"type": "keyUp", "value": holding}]
        self.ask("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def focused(self):
        """The name that a screen reader says of what has the focus."""
        element = self.ask("GET", f"{self.session}/element/active")[ELEMENT]
        return self.ask("GET", f"{self.session}/element/{element}/computedlabel")

    def role(self, selector):
        return self.ask("GET", f"{self.session}/element/{self.find(selector)}/computedrole")

    def devtools(self, command, **parameters):
        return self.ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height=900, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=phone)

    def theme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path):
        """The whole page, as a PNG."""
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self):
        """What has gone to the browser's console since it was last asked."""
        return [entry for entry in self.ask("POST", f"{self.session}/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """The addresses that pages have asked for since this was last called."""
        urls = []
        for entry in self.ask("POST", f"{self.session}/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls
