# SPDX-License-Identifier: Apache-2.0
"""The clients of one Region in a round of live_strong_rounds.py: a process of its own, so that three of them
are not one behind Python's lock. Commands come on standard input, answers go to standard output, one JSON
object a line.

Each thread has one operation under way at a time and writes down what linear_main reads: when it was called,
when it returned, what was observed. The answers fall into four kinds: done; refused for certain, by a conflict
or by a 500 that says so ("Nothing was done"), or because nobody listened; everything else is unknown. What
was refused for certain must not have happened, and is left out of the history, so that its value in any read
would be a violation.

Values are distinct: a put writes a multiple of STEP that no other put writes, and ADD counts on from it. A
conditional put that fails and shows the item is a read of it; a put that shows what it replaced is as strict
as a conditional one that succeeded."""

import json
import random
import socket
import sys
import threading
import time

from cluster import authorization

STEP = 10_000
ANSWER_SECONDS, PAUSE_SECONDS, PAUSE_FAILED_SECONDS = 3, 0.002, 0.02
KINDS = {"read": 7, "put": 3, "if": 5, "add": 3, "delete": 1, "insert": 1}


class Lost(Exception):
    """No answer. `sent`: something may have reached the Region."""

    def __init__(self, sent):
        super().__init__()
        self.sent = sent


class Wire:
    """One keep-alive connection, as lean as Python lets it be."""

    def __init__(self, region, port):
        self.port, self.socket = port, None
        self.head = (f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/x-amz-json-1.0\r\n"
                     f"X-Amz-Date: 20260101T000000Z\r\nAuthorization: {authorization(region)}\r\n"
                     "X-Amz-Target: DynamoDB_20120810.")

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def call(self, operation, members):
        """Status and decoded body; Lost."""
        body = json.dumps(members)
        sent = False
        try:
            if not self.socket:
                self.socket = socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sent = True
            self.socket.sendall(f"{self.head}{operation}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            return self.read_answer()
        except (OSError, ValueError) as error:
            self.close()
            raise Lost(sent) from error

    def read_answer(self):
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        head = data[:end].lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(data) < end + 4 + length:
            data += self.receive()
        return int(head.split(b" ", 2)[1]), json.loads(data[end + 4:])

    def receive(self):
        part = self.socket.recv(65536)
        if not part:
            raise OSError("closed")
        return part


def number_of(item):
    return int(item["v"]["N"]) if item and "v" in item else None


def text_of(number):
    return "none" if number is None else number


class Worker:
    """Draws operations, sends them, and keeps the history. `place` is its number over all Regions."""

    def __init__(self, region, port, table, keys, place, seed):
        self.wire, self.region, self.table = Wire(region, port), region, table
        self.keys, self.place = keys, place
        self.rng, self.writes = random.Random(seed), 0
        self.seen = {}  # the last value of a key that this worker knows of
        self.lines, self.inserted, self.not_inserted = [], [], []
        self.count = dict.fromkeys(("ok", "condition", "conflict", "failed", "unknown"), 0)
        self.trouble = None
        self.may_forget = False  # a Region that lost its disk does not know its tables until another tells it

    def value(self):
        self.writes += 1
        return (self.writes * 64 + self.place) * STEP

    def step(self):
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        return getattr(self, "do_" + kind)(self.rng.choice(self.keys))

    def run(self, stop):
        try:
            while not stop.is_set():
                time.sleep(PAUSE_SECONDS * self.rng.random() if self.step() else PAUSE_FAILED_SECONDS)
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = repr(error)
        self.wire.close()

    def send(self, operation, **members):
        """(outcome, body, call, return); the outcome is ok, condition, or one after which nothing is known of
        the body."""
        call = time.monotonic_ns()
        try:
            status, body = self.wire.call(operation, {"TableName": self.table, **members})
        except Lost as lost:
            return self.told("unknown" if lost.sent else "failed"), None, call, None
        returned = time.monotonic_ns()
        error = str(body.get("__type", "")).rpartition("#")[2]
        message = body.get("message", body.get("Message", ""))
        if status == 200:
            outcome = "ok"
        elif error == "ConditionalCheckFailedException":
            outcome = "condition"
        elif error == "ReplicatedWriteConflictException":
            outcome = "conflict"
        elif error == "ResourceNotFoundException" and self.may_forget:
            outcome = "failed"
        elif status >= 500:
            outcome = "failed" if "Nothing was done" in message else "unknown"
        else:
            raise AssertionError(f"{operation}: {status} {body}")
        return self.told(outcome), body, call, returned

    def told(self, outcome):
        self.count[outcome] += 1
        return outcome

    def note(self, key, call, returned, kind, argument="-", expected="-", result="-"):
        self.lines.append(f"{key} {call} {'?' if returned is None else returned} {kind} {argument} {expected} "
                          f"{result}")

    def note_unknown(self, outcome, key, call, kind, argument="-", expected="-", result="-"):
        """A write without a certain answer: in the history unless it was refused."""
        if outcome == "unknown":
            self.note(key, call, None, kind, argument, expected, result)
        return False

    def do_read(self, key):
        outcome, body, call, returned = self.send("GetItem", Key={"pk": {"S": key}}, ConsistentRead=True)
        if outcome != "ok":
            return False
        self.seen[key] = number_of(body.get("Item"))
        self.note(key, call, returned, "read", result=text_of(self.seen[key]))
        return True

    def do_put(self, key):
        value, shows = self.value(), self.rng.random() < 0.5
        outcome, body, call, returned = self.send(
            "PutItem", Item=self.item(key, value), ReturnValues="ALL_OLD" if shows else "NONE")
        if outcome != "ok":
            return self.note_unknown(outcome, key, call, "put", value)
        if shows:
            self.note(key, call, returned, "if", value, text_of(number_of(body.get("Attributes"))), "ok")
        else:
            self.note(key, call, returned, "put", value)
        self.seen[key] = value
        return True

    def do_if(self, key):
        value, expected, legacy = self.value(), self.seen.get(key), self.rng.random() < 0.3
        members = self.legacy_condition(expected) if legacy else self.condition(expected)
        outcome, body, call, returned = self.send("PutItem", Item=self.item(key, value), **members)
        if outcome == "ok":
            self.note(key, call, returned, "if", value, text_of(expected), "ok")
            self.seen[key] = value
        elif outcome == "condition" and legacy:
            self.note(key, call, returned, "if", value, text_of(expected), "not")
            self.seen.pop(key, None)
        elif outcome == "condition":
            found = number_of(body.get("Item"))
            if found == expected:
                raise AssertionError(f"{key}: the condition failed on {expected}, which it asks for")
            self.note(key, call, returned, "read", result=text_of(found))
            self.seen[key] = found
        else:
            return self.note_unknown(outcome, key, call, "if", value, text_of(expected), "?")
        return True

    @staticmethod
    def condition(expected):
        shown = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if expected is None:
            return {"ConditionExpression": "attribute_not_exists(pk)", **shown}
        return {"ConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": {"N": str(expected)}},
                **shown}

    @staticmethod
    def legacy_condition(expected):
        if expected is None:
            return {"Expected": {"pk": {"Exists": False}}}
        return {"Expected": {"v": {"Value": {"N": str(expected)}}}}

    def do_add(self, key):
        outcome, body, call, returned = self.send(
            "UpdateItem", Key={"pk": {"S": key}}, UpdateExpression="ADD v :one",
            ExpressionAttributeValues={":one": {"N": "1"}}, ReturnValues="UPDATED_NEW")
        if outcome != "ok":
            return self.note_unknown(outcome, key, call, "add", 1, result="?")
        self.seen[key] = number_of(body["Attributes"])
        self.note(key, call, returned, "add", 1, result=self.seen[key])
        return True

    def do_delete(self, key):
        outcome, body, call, returned = self.send("DeleteItem", Key={"pk": {"S": key}}, ReturnValues="ALL_OLD")
        if outcome != "ok":
            return self.note_unknown(outcome, key, call, "delete", result="?")
        self.note(key, call, returned, "delete", result=text_of(number_of(body.get("Attributes"))))
        self.seen[key] = None
        return True

    def do_insert(self, key):
        """An item of its own: it must be there in the end if this was acknowledged, and not if refused."""
        value = self.value()
        name = f"{key}-insert-{value}"
        outcome = self.send("PutItem", Item=self.item(name, value))[0]
        if outcome == "ok":
            self.inserted.append(name)
        elif outcome != "unknown":
            self.not_inserted.append(name)
        return outcome == "ok"

    def item(self, key, value):
        return {"pk": {"S": key}, "v": {"N": str(value)}, "by": {"S": f"{self.place}"},
                "pad": {"S": "x" * self.rng.randrange(200)}}


def report(workers):
    count = {kind: sum(w.count[kind] for w in workers) for kind in workers[0].count}
    return {"lines": [line for w in workers for line in w.lines], "count": count,
            "inserted": [name for w in workers for name in w.inserted],
            "not_inserted": [name for w in workers for name in w.not_inserted],
            "trouble": [w.trouble for w in workers if w.trouble]}


def serve():
    stop, threads, workers = threading.Event(), [], []
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "start":
            stop.clear()
            workers = [Worker(command["region"], command["port"], command["table"], command["keys"],
                              command["place"] + n, f"{command['seed']} {n}") for n in range(command["threads"])]
            threads = [threading.Thread(target=w.run, args=(stop,), daemon=True) for w in workers]
            for thread in threads:
                thread.start()
            print("{}", flush=True)
        else:
            stop.set()
            for thread in threads:
                thread.join()
            print(json.dumps(report(workers)), flush=True)


if __name__ == "__main__":
    serve()
