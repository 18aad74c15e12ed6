# SPDX-License-Identifier: MIT
"""browser.py - just enough of the W3C WebDriver protocol, over chromedriver, with Python's standard library."""
import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1"]


def available():
    return shutil.which("chromium") and shutil.which("chromedriver")


class Browser:
    def __init__(self, width=1280, height=800, dark=False):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        for _ in range(10):  # somebody else may take the port that was free
            if self.start_driver():
                break
        arguments = ARGUMENTS + [f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def start_driver(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={self.port}", "--log-level=OFF"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.driver.poll() is None:
            try:
                self.call("GET", "/status")
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=900) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(json.load(e)["value"]["message"]) from None

    def open(self, path):
        self.call("POST", self.session + "/url", {"url": "file://" + str(path)})
        self.wait("return !!window.heapprof || !!document.querySelector('.fatal')")

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        for _ in range(12000):
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError("never came true: " + script)

    def find(self, css):
        return self.call("POST", self.session + "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.call("POST", f"{self.session}/element/{self.find(css)}/click", {})

    def keys(self, text):
        """Types into whatever has the focus."""
        down_up = [{"type": kind, "value": c} for c in text for kind in ("keyDown", "keyUp")]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "k", "actions": down_up}]})

    def pointer(self, x, y, click=True):
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "pointer", "id": "m", "actions": actions}]})

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("GET", self.session + "/screenshot")))

    def log(self, kind):
        return self.call("POST", self.session + "/se/log", {"type": kind})

    def close(self):
        try:
            self.call("DELETE", self.session)
        except (OSError, RuntimeError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.folder.cleanup()


KEYS = {"enter": "\ue007", "escape": "\ue00c", "up": "\ue013", "down": "\ue015", "left": "\ue012", "right": "\ue014"}
