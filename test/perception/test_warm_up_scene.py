"""What a node does before its first request reaches every kernel: it ends with an object on a table."""

from morphit_ros.perception.scene import SceneStatus
from morphit_ros.perception.warm_up import warm_up


def test_the_warm_up_goes_all_the_way_to_an_object():
    scene = warm_up()
    assert scene.status is SceneStatus.OK
    assert len(scene.objects) == 1
    assert scene.table is not None
