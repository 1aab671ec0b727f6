from .formats import (
    FORMATS as FORMATS,
    ModelFormat as ModelFormat,
    export_model as export_model,
    format_of as format_of,
    read_model as read_model,
)
from .planner import MotionPlannerConfig as MotionPlannerConfig
