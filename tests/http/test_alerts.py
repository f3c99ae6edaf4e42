"""Each alert of `config/` fires when it should and is silent otherwise, by promtool's account."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.promtool import promtool

FOLDER = Path(__file__).parents[2] / "config"
FILES = [FOLDER / "alerts.yml", FOLDER / "gateway-alerts.yml"]
P = "minicontroller_"
NODE = 'job="kafka",instance="a:1",node="1"'
OTHER = 'job="kafka",instance="b:1",node="2"'
TARGET = 'job="kafka",instance="a:1"'
UP, DOWN, GONE = "1x40", "1x10 0x30", "1x10 stale _x29"
STEPS_UP = "0x10 1x30"
"""A counter that grows by 1 once, from 0 on, as the first failure of a series shows it."""
Series = dict[str, str]
Case = tuple[str, Series, bool]
"""An alert, the series that there are, and whether it fires with them."""
CASES: dict[str, tuple[Series, Series]] = {
    # alert: the series with which it fires, and those with which it is silent
    "NodeDown": (
        {f"up{{{TARGET}}}": DOWN, f'{P}info{{{TARGET},version="1"}}': GONE},
        {f"up{{{TARGET}}}": UP, f'{P}info{{{TARGET},version="1"}}': UP, 'up{job="other",instance="c:1"}': "0x40"},
    ),
    "NoNodes": (
        {f"{P}is_controller{{{NODE}}}": GONE, f"{P}is_controller{{{OTHER}}}": GONE},
        {f"{P}is_controller{{{NODE}}}": GONE, f"{P}is_controller{{{OTHER}}}": "0x40"},
    ),
    "NoController": (
        {f"{P}is_controller{{{NODE}}}": DOWN, f"{P}is_controller{{{OTHER}}}": "0x40"},
        {f"{P}is_controller{{{NODE}}}": "1x10 0x30", f"{P}is_controller{{{OTHER}}}": "0x10 1x30"},
    ),
    "SeveralControllers": (
        {f"{P}is_controller{{{NODE}}}": UP, f"{P}is_controller{{{OTHER}}}": UP},
        {f"{P}is_controller{{{NODE}}}": UP, f"{P}is_controller{{{OTHER}}}": "0x40"},
    ),
    "NodeNotReady": ({f"{P}ready{{{NODE}}}": DOWN}, {f"{P}ready{{{NODE}}}": "1x10 0x2 1x28"}),
    "StoreSessionLost": (
        {f'{P}store_session{{{NODE},state="expired"}}': "0x10 1x30"},
        {f'{P}store_session{{{NODE},state="connected"}}': UP, f'{P}store_session{{{NODE},state="expired"}}': "0x40"},
    ),
    "FrequentElections": (
        {f"{P}elections_won_total{{{NODE}}}": "0x5 2x5 4x5 6x30"},
        {f"{P}elections_won_total{{{NODE}}}": STEPS_UP},
    ),
    "LeaderlessPartitions": (
        {f"{P}leaderless_partitions{{{NODE}}}": "0x10 3x30"},
        {f"{P}leaderless_partitions{{{NODE}}}": "0x10 3x2 0x28"},
    ),
    "UncleanElections": (
        {f"{P}unclean_leader_elections_total{{{NODE}}}": STEPS_UP},
        {f"{P}unclean_leader_elections_total{{{NODE}}}": "4x40"},
    ),
    "NodesBehind": ({f"{P}nodes_behind{{{NODE}}}": UP}, {f"{P}nodes_behind{{{NODE}}}": "0x40"}),
    "WriterQueue": (
        {f"{P}writer_waiting_requests{{{NODE}}}": "2000x40"},
        {f"{P}writer_waiting_requests{{{NODE}}}": "900x40"},
    ),
    "SlowChanges": (
        {f'{P}request_seconds_bucket{{{NODE},api="CreateTopics",le="{le}"}}': values for le, values in (("5.0", "0x40"), ("10.0", "0+9x40"), ("+Inf", "0+9x40"))},
        {f'{P}request_seconds_bucket{{{NODE},api="CreateTopics",le="{le}"}}': "0+9x40" for le in ("0.1", "5.0", "+Inf")},
    ),
    "UnexpectedErrors": (
        {f"{P}unexpected_errors_total{{{NODE}}}": STEPS_UP},
        {f"{P}unexpected_errors_total{{{NODE}}}": "7x40"},
    ),
    "PolicyBroken": (
        {f'{P}policy_verdicts_total{{{NODE},policy="P",rule="",decision="broken"}}': STEPS_UP},
        {f'{P}policy_verdicts_total{{{NODE},policy="P",rule="",decision="violated"}}': "0+1x40"},
    ),
    "RuleFails": (
        {f'{P}policy_findings_total{{{NODE},rule="r",action="failed"}}': STEPS_UP},
        {f'{P}policy_findings_total{{{NODE},rule="r",action="deny"}}': "0+1x40"},
    ),
    "WouldBeRefused": (
        {f'{P}would_be_refused_total{{{NODE},policy="P",rule="r"}}': STEPS_UP},
        {f'{P}would_be_refused_total{{{NODE},policy="P",rule="r"}}': "0x40"},
    ),
    "RuleFilesInvalid": ({f"{P}rule_files_valid{{{NODE}}}": DOWN}, {f"{P}rule_files_valid{{{NODE}}}": UP}),
    "PolicyRestarts": ({f"{P}policy_restarts_total{{{NODE}}}": STEPS_UP}, {f"{P}policy_restarts_total{{{NODE}}}": "1x40"}),
    "ForgedForwarding": (
        {f"{P}refused_forwardings_total{{{NODE}}}": STEPS_UP, f"{P}refused_node_requests_total{{{NODE}}}": "0x40"},
        {f"{P}refused_forwardings_total{{{NODE}}}": "2x40", f"{P}refused_node_requests_total{{{NODE}}}": "0x40"},
    ),
    "FailedAuthentications": (
        {f'{P}failed_authentications_total{{{NODE},mechanism="PLAIN"}}': "0+60x40"},
        {f'{P}failed_authentications_total{{{NODE},mechanism="PLAIN"}}': "0+1x40"},
    ),
    "CertificateExpires": (
        {f'{P}certificate_seconds{{{NODE},listener="SSL"}}': "1000x40"},
        {f'{P}certificate_seconds{{{NODE},listener="SSL"}}': "9000000x40"},
    ),
    "AuditEventsLost": ({f"{P}audit_dropped_events_total{{{NODE}}}": STEPS_UP}, {f"{P}audit_dropped_events_total{{{NODE}}}": "3x40"}),
    "AuditRefuses": (
        {f"{P}audit_refused_requests_total{{{NODE}}}": "0x18 1x30"},
        {f"{P}audit_refused_requests_total{{{NODE}}}": "3x40"},
    ),
    "AuditWritesFail": ({f"{P}audit_failed_writes_total{{{NODE}}}": "0x18 1x30"}, {f"{P}audit_failed_writes_total{{{NODE}}}": "3x40"}),
    "AuditLag": ({f"{P}audit_lag_seconds{{{NODE}}}": "60x40"}, {f"{P}audit_lag_seconds{{{NODE}}}": "5x40"}),
    "NoGateway": ({f"{P}gateway_enforces{{{NODE}}}": GONE}, {f"{P}gateway_enforces{{{NODE}}}": "0x40"}),
    "GatewayHasNoCluster": (
        {f"{P}gateway_enforces{{{NODE}}}": UP, f"{P}ready{{{NODE}}}": "0x40"},
        {f"{P}gateway_enforces{{{NODE}}}": UP, f"{P}ready{{{NODE}}}": UP, f"{P}ready{{{OTHER}}}": "0x40"},
    ),
    "GatewayDoesNotJudge": (
        {f"{P}gateway_unjudged_requests_total{{{NODE}}}": "0x18 1x30"},
        {f"{P}gateway_unjudged_requests_total{{{NODE}}}": "3x40"},
    ),
    "GatewayDoesNotKnowItsCluster": (
        {f"{P}gateway_cluster_readable{{{NODE}}}": "1x5 0x35"},
        {f"{P}gateway_cluster_readable{{{NODE}}}": "1x15 0x25"},
    ),
}  # fmt: skip


def a_test(cases: Sequence[Case]) -> dict[str, Any]:
    """Ask after ten minutes, with a sample and an evaluation every half minute."""
    return {
        "interval": "30s",
        "input_series": [
            {"series": name, "values": values} for _, series, _ in cases for name, values in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0',
                "eval_time": "10m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            for alert, _, fires in cases
        ],
    }


def together(cases: Iterable[Case]) -> list[list[Case]]:
    """Put cases into as few tests as nearly as possible: each evaluates all alerts, and cases that
    share no metric do not disturb each other.
    """
    groups: list[tuple[set[str], list[Case]]] = []
    for case in cases:
        metrics = {name.partition("{")[0] for name in case[1]}
        for taken, group in groups:
            if taken.isdisjoint(metrics):
                taken.update(metrics)
                group.append(case)
                break
        else:
            groups.append((metrics, [case]))
    return [group for _, group in groups]


def test_every_alert_fires_when_it_should_and_is_silent_otherwise(tmp_path: Path) -> None:
    """The dead of all nodes or of one, the first failure of a rule, an observed refusal and all the
    others are told, and the ordinary is not.
    """
    alerts = [
        rule["alert"]
        for file in FILES
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    assert sorted(alerts) == sorted(CASES)
    cases = together((name, both[not fires], fires) for name, both in CASES.items() for fires in (True, False))
    tests = {
        "rule_files": [str(file) for file in FILES],
        "evaluation_interval": "30s",
        "tests": list(map(a_test, cases)),
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    done = subprocess.run(
        [promtool(), "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
