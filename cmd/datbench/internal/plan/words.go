package plan

import "github.com/datxdp/datxdp/internal/result"

// Values of flags.
var (
	RowOps     = result.OperationNames()
	Ops        = result.OperationNames(result.ClassDAT)
	RawMetrics = []string{result.Latency, result.Rate, result.Bandwidth}
	JobMetrics = []string{result.Latency, result.Rate, result.Requests, result.Bandwidth}
	RunMetrics = append(JobMetrics[:len(JobMetrics):len(JobMetrics)], result.SHA256)
	ChurnSizes = []string{"64M", "1G"}
	Transports = []string{TransportAuto, TransportXDP, TransportUDP}
	Engines    = []string{EngineNative, engineAsavie}
)
