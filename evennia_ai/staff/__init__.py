"""What staff are shown: status, explanations, the doctor, exports. Commands and pages render it."""
