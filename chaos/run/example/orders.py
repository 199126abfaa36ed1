# SPDX-License-Identifier: Apache-2.0
"""An order service as small as it gets: it writes to its home Region and, while that fails, to the next."""

import os
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

HOME, OTHER = os.environ["TIDEMARK_REGIONS"].split(",")
SETTINGS = Config(connect_timeout=0.2, read_timeout=0.5, retries={"max_attempts": 0})
CLIENTS = [boto3.client("dynamodb", region_name=region, endpoint_url=os.environ["AWS_ENDPOINT_URL"], config=SETTINGS)
           for region in (HOME, OTHER)]


def wait_for_table(client):
    client.get_waiter("table_exists").wait(TableName="orders", WaiterConfig={"Delay": 1})  # seconds


def make_table():
    CLIENTS[0].create_table(TableName="orders", BillingMode="PAY_PER_REQUEST",
                            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
    wait_for_table(CLIENTS[0])
    CLIENTS[0].update_table(TableName="orders", ReplicaUpdates=[{"Create": {"RegionName": OTHER}}])
    wait_for_table(CLIENTS[1])


def take_order(number):
    """Until some Region has it; the Region's place in the list."""
    while True:
        for place, client in enumerate(CLIENTS):
            try:
                client.put_item(TableName="orders", Item={"id": {"S": f"order-{number}"}})
                return place
            except (BotoCoreError, ClientError):
                continue


def main():
    make_table()
    counts, longest, end = [0, 0], 0.0, time.monotonic() + 9
    while (began := time.monotonic()) < end:
        counts[take_order(sum(counts))] += 1
        longest = max(longest, time.monotonic() - began)
    print(f"{counts[0]} orders taken in {HOME}, {counts[1]} in {OTHER}; the slowest took {longest * 1000:.0f} ms")


if __name__ == "__main__":
    main()
