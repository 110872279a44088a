"""Purchases of the customers of CDNOW, where a stationary process is the wrong model: the judgement has to say so.

The log is what a user makes of a list of purchases: a row per customer and week from the week after the first purchase to the end
of the list, in which recording stopped. The state is what the customer is usually known by, weeks since the last purchase and number
of purchases; the reward is what was spent in the week; the date of the week stays beside it.
"""

import csv
import datetime

from common import WORK, Evaluation, folder_of, say

PURCHASES, GAMMA = 69_659, 0.98
BEGIN, WEEKS = datetime.date(1997, 1, 1), 78
REASON = "not stationary"


def purchases():
    """By customer, what was spent and how often in each week."""
    customers, count = {}, 0
    with open(folder_of("lifetimes") / "datasets" / "CDNOW_master.txt") as file:
        next(file)
        for line in file:
            customer, date, _, dollars = line.split()
            week = (datetime.datetime.strptime(date, "%Y%m%d").date() - BEGIN).days // 7
            spent = customers.setdefault(customer, {})
            dollars_so_far, number = spent.get(week, (0.0, 0))
            spent[week] = (dollars_so_far + float(dollars), number + 1)
            count += 1
    return customers, count


def write(path):
    customers, count = purchases()
    rows = 0
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "date", "s_weeks_since", "s_purchases", "reward", "terminated"])
        for customer, spent in customers.items():
            last = min(spent)
            number = spent[last][1]
            for week in range(last + 1, WEEKS + 1):
                day = BEGIN + datetime.timedelta(weeks=week)
                dollars, bought = spent.get(week, (0.0, 0))
                # The week in which the list ends has a state and no reward.
                reward = "" if week == WEEKS else f"{dollars:.2f}"
                writer.writerow([customer, day, week - last, number, reward, 0])
                rows += 1
                if bought:
                    last, number = week, number + bought
    return len(customers), count, rows


def study(criteria):
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / "cdnow.csv"
    say("cdnow: writing the log")
    customers, count, rows = write(path)
    say(f"cdnow: {rows:,} rows")
    run = Evaluation(path, GAMMA)
    print(f"\n## CDNOW: {count:,} purchases of {customers:,} customers, {rows:,} weeks\n")
    print(f"Judgement {run.judgement}, {run.seconds:.1f} s, {run.peak:.0f} MiB, {len(run.rows):,} states, discount {GAMMA} a week.\n")
    for reason in run.reasons:
        print(f"> {reason}")
    print()
    criteria.check(count == PURCHASES, f"{count:,} purchases")
    criteria.check(run.judgement in ("caution", "refuse"), f"the judgement is {run.judgement}, caution or refuse")
    criteria.check(any(REASON in reason for reason in run.reasons), f"a reason says '{REASON}'")
