# SPDX-License-Identifier: Apache-2.0
"""A real cluster for the live tests: starts `tidemark up`, waits until it serves, talks to it, stops it.

Only the standard library is used, so that what a test sees is what the programs sent: the client below
checks the checksum of every answer and knows nothing of DynamoDB but its envelope. Nothing here sleeps
for luck: a test states what it waits for, and a deadline says how long that may take at most. When a
cluster stops, no process of it may be left and no sanitizer may have spoken.
"""

import http.client
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TIDEMARK_BUILD", os.path.join(ROOT, "build", "release"))
TIDEMARK = os.path.abspath(os.path.join(BUILD, "tidemark"))
try:
    with open(os.path.join(BUILD, "tidemark-region"), "rb") as program:
        SANITIZED = re.search(rb"__[at]san_init", program.read()) is not None
except OSError as missing:
    sys.exit(f"{missing}. Build first (./up does), or set TIDEMARK_BUILD to a build directory.")
# Deadlines are for a broken program, not for a slow machine: sanitized builds share two cores.
DEADLINE = float(os.environ.get("TIDEMARK_DEADLINE", "60"))
USA, EUROPE, JAPAN = "us-east-1", "eu-west-1", "ap-northeast-1"
REGIONS = (USA, EUROPE, JAPAN)
# A shell ignores it for what it runs in the background, and the programs under test would go on doing so.
signal.signal(signal.SIGINT, signal.default_int_handler)


class ApiError(Exception):
    """An error answer. `type` is the name after the '#'."""

    def __init__(self, status, body, headers):
        self.status, self.body, self.headers = status, body, headers
        self.type = str(body.get("__type", "")).rpartition("#")[2]
        self.message = body.get("message", body.get("Message", ""))
        super().__init__(f"{status} {self.type}: {self.message}")


class Unknown(Exception):
    """No answer: the request may or may not have taken effect."""


def authorization(region, key="AKIDEXAMPLE"):
    return (f"AWS4-HMAC-SHA256 Credential={key}/20260101/{region}/dynamodb/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + "0" * 64)


class Client:
    """One keep-alive connection to one address, signing for one Region. Not for sharing by threads."""

    def __init__(self, region, port, key="AKIDEXAMPLE", timeout=DEADLINE):
        self.region, self.port, self.key, self.timeout = region, port, key, timeout
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def http(self, method, path, body=b"", headers=None):
        """Status, headers (lower case) and body of one exchange."""
        if self.connection and self.connection.sock and select.select([self.connection.sock], [], [], 0)[0]:
            self.close()  # the server has closed it, idle as it was
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            self.connection.request(method, path, body, headers or {})
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unknown(f"{method} {path} on port {self.port}: {error!r}") from error
        if answer.will_close:
            self.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def raw(self, operation, body, headers=None):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        sent = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": operation if "." in operation else "DynamoDB_20120810." + operation,
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": authorization(self.region, self.key),
        }
        sent.update(headers or {})
        sent = {name: value for name, value in sent.items() if value is not None}
        status, answer_headers, content = self.http("POST", "/", body, sent)
        checksum = answer_headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(content):
            raise AssertionError(f"{operation}: x-amz-crc32 {checksum} is not that of {content!r}")
        return status, answer_headers, content

    def call(self, operation, headers=None, /, **members):
        status, answer_headers, content = self.raw(operation, members, headers)
        try:
            body = json.loads(content) if content else {}
        except ValueError:
            raise AssertionError(f"{operation}: {status} with a body that is not JSON: {content!r}")
        if status != 200:
            raise ApiError(status, body, answer_headers)
        if "x-amz-crc32" not in answer_headers or "x-amzn-requestid" not in answer_headers:
            raise AssertionError(f"{operation}: checksum or request id is missing: {answer_headers}")
        return body

    # Shorthand of the cases: keyword values are attributes, a str is S and an int is N.
    def put(self, table, **attributes):
        return self.call("PutItem", TableName=table, Item=item(**attributes))

    def get(self, table, **key):
        return self.call("GetItem", TableName=table, Key=item(**key), ConsistentRead=True).get("Item")

    def delete(self, table, **key):
        return self.call("DeleteItem", TableName=table, Key=item(**key))

    def update(self, table, key, expression, values=None, **more):
        members = dict(TableName=table, Key=item(**key), UpdateExpression=expression, **more)
        if values:
            members["ExpressionAttributeValues"] = {":" + k: value(v) for k, v in values.items()}
        return self.call("UpdateItem", **members)

    def describe(self, table):
        return self.call("DescribeTable", TableName=table)["Table"]

    def pages(self, operation, **members):
        while True:
            page = self.call(operation, **members)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            members["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def scan(self, table, **members):
        """Every item, in an order that two Regions agree on."""
        items = [i for page in self.pages("Scan", TableName=table, ConsistentRead=True, **members)
                 for i in page["Items"]]
        return sorted(items, key=lambda i: json.dumps(i, sort_keys=True))

    def create(self, table, sort=False, **members):
        names = ["pk", "sk"] if sort else ["pk"]
        self.call("CreateTable", TableName=table, BillingMode="PAY_PER_REQUEST",
                  AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in names],
                  KeySchema=[{"AttributeName": n, "KeyType": k} for n, k in zip(names, ("HASH", "RANGE"))],
                  **members)
        wait_until(f"{table} is ACTIVE in {self.region}",
                   lambda: self.describe(table)["TableStatus"] == "ACTIVE")
        return table


def value(plain):
    if isinstance(plain, dict):
        return plain
    if isinstance(plain, bool):
        return {"BOOL": plain}
    return {"N": str(plain)} if isinstance(plain, int) else {"S": plain}


def item(**attributes):
    return {name: value(plain) for name, plain in attributes.items()}


def wait_until(what, condition, deadline=None, poll=0.02):
    """The first true result of condition, which may also raise ApiError, Unknown or AssertionError."""
    end = time.monotonic() + (deadline or DEADLINE)
    trouble = None
    while True:
        try:
            result = condition()
            if result:
                return result
            trouble = None
        except (ApiError, Unknown, AssertionError) as error:
            trouble = error
        if time.monotonic() > end:
            raise AssertionError(f"Waited {deadline or DEADLINE:g} s in vain: {what}" +
                                 (f" (last: {trouble})" if trouble else ""))
        time.sleep(poll)


def children_of(pid):
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as listing:
                found += [int(child) for child in listing.read().split()]
    except OSError:
        pass
    return found + [grandchild for child in found for grandchild in children_of(child)]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_ports(count):
    """The first of `count` ports in a row, below those that the system gives to clients."""
    for _ in range(1000):
        first = random.randrange(10000, 32000 - count)
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
    raise AssertionError("No free ports were found")


class Cluster:
    def __init__(self, regions=REGIONS, durability="os", data=None, options=(), witnesses=(), home=None):
        self.regions, self.durability, self.options = tuple(regions), durability, tuple(options)
        self.witnesses = tuple(witnesses)
        self.home = home  # the directory to start in
        self.own_data = data is None
        self.data = data or tempfile.mkdtemp(prefix="tidemark-live-")
        self.process = None
        self.clients = threading.local()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self, tries=3):
        self.front = free_ports(2 + len(self.regions) + len(self.witnesses))
        self.control_port = self.front + 1 + len(self.regions) + len(self.witnesses)
        self.control = f"http://127.0.0.1:{self.control_port}"
        self.log_path = os.path.join(self.data, "cluster.log")
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            [TIDEMARK, "up", "--regions", ",".join(self.regions), "--port", str(self.front), "--control",
             f"127.0.0.1:{self.control_port}", "--data", os.path.join(self.data, "regions"),
             "--durability", self.durability,
             *(["--witness", ",".join(self.witnesses)] if self.witnesses else []), *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=self.home,
            env={**os.environ, "TSAN_OPTIONS": f"suppressions={ROOT}/tests/tsan.supp"})
        self.output, self.ready = [], threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        started = time.monotonic()
        if not self.ready.wait(DEADLINE) or self.output[-1:] != ["ready"]:
            if tries > 1 and "in use" in self.log_tail() + "".join(self.output):
                self.stop(check=False)  # another test's cluster was quicker
                return self.start(tries - 1)
            told = self.log_tail()
            self.stop(check=False)
            raise AssertionError(f"`tidemark up` did not become ready: {self.output}\n{told}")
        self.seconds_to_ready = time.monotonic() - started
        return self

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line.rstrip("\n"))
            if self.output[-1] == "ready":
                self.ready.set()
        self.ready.set()

    def log_tail(self, lines=30):
        self.log.flush()
        with open(self.log_path, errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def stop(self, check=True):
        if not self.process:
            return
        children = children_of(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "did not stop on SIGTERM"
        self.process.stdout.close()
        self.process = None
        self.log.close()
        with open(self.log_path, errors="replace") as log:
            log = log.read()
        try:
            if check:
                left = [pid for pid in children if is_running(pid)]
                assert not left, f"processes {left} outlived `tidemark up`"
                assert status == 0, f"`tidemark up` ended with {status}:\n{log[-4000:]}"
                report = re.search(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:"
                                   r"|check failed", log)
                assert not report, log[report.start():report.start() + 6000]
        finally:
            if self.own_data and check:
                shutil.rmtree(self.data, ignore_errors=True)

    def port(self, region):
        return self.front + 1 + (self.regions + self.witnesses).index(region)

    def endpoint(self, region=None):
        return f"http://127.0.0.1:{self.port(region) if region else self.front}"

    def client(self, region, through_door=False, **options):
        """This thread's client of a Region."""
        if options:
            return Client(region, self.front if through_door else self.port(region), **options)
        name = f"{region} {through_door}"
        if name not in self.clients.__dict__:
            self.clients.__dict__[name] = Client(region, self.front if through_door else self.port(region))
        return self.clients.__dict__[name]

    def command(self, *arguments, status=0):
        """Runs `tidemark`, gives its standard output; decoded when --json is among the arguments."""
        done = subprocess.run([TIDEMARK, *arguments, "--control", self.control], text=True,
                              capture_output=True, timeout=DEADLINE, check=False)
        assert done.returncode == status, f"tidemark {arguments}: {done}"
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    def status(self):
        return self.command("status", "--json")

    def conflicts(self):
        return self.command("conflicts", "--json")

    def cut(self, a, b):
        self.command("link", "cut", a, b)

    def heal(self, a, b):
        self.command("link", "heal", a, b)

    def cut_both(self, a, b):
        self.cut(a, b)
        self.cut(b, a)

    def heal_both(self, a, b):
        self.heal(a, b)
        self.heal(b, a)

    def set_clock(self, region, offset_ms):
        status, _, content = Client(region, self.port(region)).http(
            "PUT", "/tidemark/clock", json.dumps({"offset_ms": offset_ms}),
            {"Content-Type": "application/json"})
        assert status == 200, content

    def region_status(self, region):
        status, _, content = self.client(region).http("GET", "/tidemark/status")
        assert status == 200, content
        return json.loads(content)

    def pid(self, region):
        return next(r["pid"] for r in self.status()["regions"] if r["name"] == region)

    def resident_kib(self, region):
        with open(f"/proc/{self.pid(region)}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def make_global(self, table, regions=None, sort=False, first=None, create=True):
        """A global table over the Regions, made in the first of them; ACTIVE everywhere on return."""
        regions = regions or self.regions
        home = self.client(regions[0])
        if create:
            home.create(table, sort)
        for region in regions[1:]:
            # Retried as an SDK does: a Region that has just started may not have reached its peers yet.
            wait_until(f"{region} can be added", lambda: home.call(
                "UpdateTable", TableName=table, ReplicaUpdates=[{"Create": {"RegionName": region}}]))
            self.wait_members(table, regions[:regions.index(region) + 1])
        return table

    def make_strong(self, table, regions=None, witness=None, **options):
        """A strong table over the Regions (three, or two and a witness), ACTIVE everywhere on return."""
        regions = regions or self.regions
        witness = witness or next(iter(self.witnesses), None) if len(regions) == 2 else None
        home = self.client(regions[0])
        home.create(table, **options)
        members = {"ReplicaUpdates": [{"Create": {"RegionName": r}} for r in regions[1:]]}
        if witness:
            members["GlobalTableWitnessUpdates"] = [{"Create": {"RegionName": witness}}]
        wait_until("it can be made strong", lambda: home.call(
            "UpdateTable", TableName=table, MultiRegionConsistency="STRONG", **members))
        self.wait_members(table, regions)
        return table

    def wait_members(self, table, regions):
        def all_active():
            for region in regions:
                shown = self.client(region).describe(table)
                others = {r["RegionName"]: r["ReplicaStatus"] for r in shown.get("Replicas", [])}
                if shown["TableStatus"] != "ACTIVE" or set(others) != set(regions) - {region} or \
                        set(others.values()) - {"ACTIVE"}:
                    raise AssertionError(f"{region} shows {shown['TableStatus']} and {others}")
            return True
        wait_until(f"{table} is ACTIVE in {', '.join(regions)}", all_active)

    def wait_converged(self, table, regions=None):
        """Nothing is pending on any pipe and all Regions hold the same items; gives the items."""
        regions = regions or self.regions

        def converged():
            for region in regions:
                for entry in self.region_status(region)["tables"]:
                    for pipe in entry["replication"] if entry["name"] == table else ():
                        if pipe["to"] in regions and pipe["pending"]:
                            raise AssertionError(f"{region} to {pipe['to']}: {pipe['pending']} pending")
            images = [self.client(region).scan(table) for region in regions]
            if any(image != images[0] for image in images):
                raise AssertionError("the Regions hold different items")
            return [images[0]]
        return wait_until(f"{table} has converged", converged)[0]


class ClusterTest(unittest.TestCase):
    """Tests that share one cluster, each with tables of its own."""

    regions, durability, witnesses, options, home = REGIONS, "os", (), (), None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.regions, cls.durability, options=cls.options,
                              witnesses=cls.witnesses, home=cls.home and cls.home.name).start()
        cls.tables = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def setUp(self):
        type(self).tables += 1
        self.table = f"{self._testMethodName[:200]}-{self.tables}"
        self.addCleanup(self._heal)

    def _heal(self):
        for a in self.regions:
            for b in self.regions:
                if a != b:
                    self.cluster.heal(a, b)

    def client(self, region=USA, **options):
        return self.cluster.client(region, **options)

    def refused(self, error_type, text, function, *arguments, **members):
        """The call must fail with this type and a message that holds the text; gives the error."""
        with self.assertRaises(ApiError) as caught:
            function(*arguments, **members)
        self.assertEqual((caught.exception.status, caught.exception.type), (400, error_type),
                         caught.exception.message)
        self.assertIn(text.lower(), caught.exception.message.lower())
        return caught.exception


def main():
    """Runs the tests of the calling program; its last line is what ./check adds up."""
    program = unittest.main(module="__main__", exit=False, verbosity=2, warnings="ignore")
    result = program.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = max(0, result.testsRun - failed - len(result.skipped))
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    for test, reason in result.skipped:
        print(f"{name}: skipped {test}: {reason}")
    print(f"{name}: {passed} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(1 if failed or not result.testsRun else 77 if not passed else 0)
