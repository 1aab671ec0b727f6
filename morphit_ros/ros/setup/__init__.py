"""What a running system lacks, and recordings for a calibration: processes that listen and command nothing."""
