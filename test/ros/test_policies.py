"""The SROS 2 policy: of the form that sros2 reads, with what the table of interfaces says and nothing else."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_ros.bringup import NodeDescription
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from tools.sros2_policies import main, policy


def profiles(text):
    """Path of the enclave → profile, of a policy whose form is checked on the way, as sros2's schema has it."""
    tree = ElementTree.fromstring(text)
    assert (tree.tag, tree.attrib) == ("policy", {"version": "0.2.0"})
    (enclaves,) = tree
    assert enclaves.tag == "enclaves"
    found = {}
    for enclave in enclaves:
        (group,) = enclave
        (profile,) = group
        assert (enclave.tag, set(enclave.attrib), group.tag, profile.tag) == (
            "enclave", {"path"}, "profiles", "profile",
        )  # fmt: skip
        assert set(profile.attrib) == {"ns", "node"}
        rules = {"topics": {"publish", "subscribe"}, "services": {"reply", "request"}, "actions": {"execute", "call"}}
        for entries in profile:
            ((rule, value),) = entries.attrib.items()
            assert value == "ALLOW"
            assert rule in rules[entries.tag]
            assert len(entries) > 0
            assert all(entry.tag == entries.tag.removesuffix("s") and entry.text for entry in entries)
        found[enclave.attrib["path"]] = profile
    return found


def names(profile, rule):
    return [entry.text for entries in profile if rule in entries.attrib for entry in entries]


def test_each_node_has_an_enclave_with_what_the_table_says():
    found = profiles(policy())
    assert set(found) == {f"/{node.executable}" for node in interfaces.NODES}
    gate = found["/motion_gate"]
    own = {"/rosout", "/parameter_events", *(topic.name for topic in interfaces.COMMON)}
    assert set(names(gate, "publish")) == {"joint_trajectory", "gate/state"} | own
    # Nobody else may command the arm past it, but who does so without a gate, or stops what a dead one has begun.
    commanding = {path for path, profile in found.items() if "joint_trajectory" in names(profile, "publish")}
    assert commanding == {"/motion_gate", "/grasp_execution", "/contact_planning"}
    assert {path for path, profile in found.items() if "pick" in names(profile, "call")} == {
        "/pick_client",
        "/task_execution",
        "/web_viewer",
    }
    assert "~/change_state" in names(found["/cover_control"], "reply")
    assert "~/change_state" not in names(gate, "reply")
    # Parameters of others are nobody's business.
    assert not any("~" in name for profile in found.values() for name in names(profile, "request"))


def test_namespace_further_permissions_and_file(tmp_path, capsys):
    target = tmp_path / "left.policy.xml"
    action = "/arm_controller/follow_joint_trajectory"
    words = ["--namespace", "/left/", "--allow", "grasp_execution", "call", action, "--output", str(target)]
    assert main(words) == 0
    assert "20 enclaves" in capsys.readouterr().out
    found = profiles(target.read_text(encoding="utf-8"))
    assert found["/left/grasp_execution"].attrib == {"ns": "/left", "node": "grasp_execution"}
    assert action in names(found["/left/grasp_execution"], "call")
    assert action not in names(found["/left/motion_gate"], "call")


@pytest.mark.parametrize("words", [("nobody", "call", "x"), ("motion_gate", "do", "x")])
def test_refusals(words, tmp_path, capsys):
    with pytest.raises(InvalidInputError, match="one of"):
        policy(allowed=[words])
    assert main(["--allow", *words, "--output", str(tmp_path / "p.xml")]) == 1
    assert "one of" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_job_starts_its_nodes_in_these_enclaves(monkeypatch, tmp_path):
    node = NodeDescription("motion_gate", namespace="left")
    assert "--enclave" not in node.command(tmp_path)
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    command = node.command(tmp_path)
    assert command[command.index("--enclave") + 1] in profiles(policy("left"))


def test_sros2_itself_takes_it():
    api = pytest.importorskip("sros2.policy", reason="sros2 comes with a ROS 2 installation only")
    from lxml import etree

    schema = etree.XMLSchema(etree.parse(str(api.get_policy_schema("policy.xsd"))))
    schema.assertValid(etree.fromstring(policy().encode()))
