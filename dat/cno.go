package dat

// CNO is a consumer notification object (DAT_CNO_HANDLE).
type CNO struct{}
