"""Robot descriptions, workcell configurations and kinematics. Imports geometry only."""
