package dat

// Subtype gives details about a Return (DAT_RETURN_SUBTYPE). It is only a hint: programs should decide by the type.
type Subtype uint16

// Subtypes; the values are those of uDAPL 2.0.
const (
	NoSubtype                         Subtype = 0
	SubInterrupted                    Subtype = 1
	SubResourceMemory                 Subtype = 2
	SubResourceDevice                 Subtype = 3
	SubResourceTEP                    Subtype = 4
	SubResourceTEVD                   Subtype = 5
	SubResourceProtectionDomain       Subtype = 6
	SubResourceMemoryRegion           Subtype = 7
	SubResourceErrorHandler           Subtype = 8
	SubResourceCredits                Subtype = 9
	SubResourceSRQ                    Subtype = 10
	SubInvalidHandleIA                Subtype = 11
	SubInvalidHandleEP                Subtype = 12
	SubInvalidHandleLMR               Subtype = 13
	SubInvalidHandleRMR               Subtype = 14
	SubInvalidHandlePZ                Subtype = 15
	SubInvalidHandlePSP               Subtype = 16
	SubInvalidHandleRSP               Subtype = 17
	SubInvalidHandleCR                Subtype = 18
	SubInvalidHandleCNO               Subtype = 19
	SubInvalidHandleEVDCR             Subtype = 20
	SubInvalidHandleEVDRequest        Subtype = 21
	SubInvalidHandleEVDRecv           Subtype = 22
	SubInvalidHandleEVDConn           Subtype = 23
	SubInvalidHandleEVDAsync          Subtype = 24
	SubInvalidHandleSRQ               Subtype = 25
	SubInvalidHandleCSP               Subtype = 26
	SubInvalidHandle1                 Subtype = 27
	SubInvalidHandle2                 Subtype = 28
	SubInvalidHandle3                 Subtype = 29
	SubInvalidHandle4                 Subtype = 30
	SubInvalidHandle5                 Subtype = 31
	SubInvalidHandle6                 Subtype = 32
	SubInvalidHandle7                 Subtype = 33
	SubInvalidHandle8                 Subtype = 34
	SubInvalidHandle9                 Subtype = 35
	SubInvalidHandle10                Subtype = 36
	SubInvalidArg1                    Subtype = 37
	SubInvalidArg2                    Subtype = 38
	SubInvalidArg3                    Subtype = 39
	SubInvalidArg4                    Subtype = 40
	SubInvalidArg5                    Subtype = 41
	SubInvalidArg6                    Subtype = 42
	SubInvalidArg7                    Subtype = 43
	SubInvalidArg8                    Subtype = 44
	SubInvalidArg9                    Subtype = 45
	SubInvalidArg10                   Subtype = 46
	SubInvalidStateEPUnconnected      Subtype = 47
	SubInvalidStateEPActConnPending   Subtype = 48
	SubInvalidStateEPPassConnPending  Subtype = 49
	SubInvalidStateEPTentConnPending  Subtype = 50
	SubInvalidStateEPConnected        Subtype = 51
	SubInvalidStateEPDisconnected     Subtype = 52
	SubInvalidStateEPReserved         Subtype = 53
	SubInvalidStateEPComplPending     Subtype = 54
	SubInvalidStateEPDiscPending      Subtype = 55
	SubInvalidStateEPProviderControl  Subtype = 56
	SubInvalidStateEPNotReady         Subtype = 57
	SubInvalidStateEPRecvWatermark    Subtype = 58
	SubInvalidStateEPPZ               Subtype = 59
	SubInvalidStateEPEVDRequest       Subtype = 60
	SubInvalidStateEPEVDRecv          Subtype = 61
	SubInvalidStateEPEVDConnect       Subtype = 62
	SubInvalidStateEPUnconfigured     Subtype = 63
	SubInvalidStateEPUnconfReserved   Subtype = 64
	SubInvalidStateEPUnconfPassive    Subtype = 65
	SubInvalidStateEPUnconfTentative  Subtype = 66
	SubInvalidStateCNOInUse           Subtype = 67
	SubInvalidStateCNODead            Subtype = 68
	SubInvalidStateEVDOpen            Subtype = 69
	SubInvalidStateEVDEnabled         Subtype = 70
	SubInvalidStateEVDDisabled        Subtype = 71
	SubInvalidStateEVDWaitable        Subtype = 72
	SubInvalidStateEVDUnwaitable      Subtype = 73
	SubInvalidStateEVDInUse           Subtype = 74
	SubInvalidStateEVDConfigNotify    Subtype = 75
	SubInvalidStateEVDConfigSolicited Subtype = 76
	SubInvalidStateEVDConfigThreshold Subtype = 77
	SubInvalidStateEVDWaiter          Subtype = 78
	SubInvalidStateEVDAsync           Subtype = 79
	SubInvalidStateIAInUse            Subtype = 80
	SubInvalidStateLMRInUse           Subtype = 81
	SubInvalidStateLMRFree            Subtype = 82
	SubInvalidStatePZInUse            Subtype = 83
	SubInvalidStatePZFree             Subtype = 84
	SubInvalidStateSRQOperational     Subtype = 85
	SubInvalidStateSRQError           Subtype = 86
	SubInvalidStateSRQInUse           Subtype = 87
	SubInvalidStateSRQShutdown        Subtype = 88
	SubPrivilegesRead                 Subtype = 89
	SubPrivilegesWrite                Subtype = 90
	SubPrivilegesRDMARead             Subtype = 91
	SubPrivilegesRDMAWrite            Subtype = 92
	SubProtectionRead                 Subtype = 93
	SubProtectionWrite                Subtype = 94
	SubProtectionRDMARead             Subtype = 95
	SubProtectionRDMAWrite            Subtype = 96
	SubInvalidAddressUnsupported      Subtype = 97
	SubInvalidAddressUnreachable      Subtype = 98
	SubInvalidAddressMalformed        Subtype = 99
	SubNameNotRegistered              Subtype = 100
	SubMajorNotFound                  Subtype = 101
	SubMinorNotFound                  Subtype = 102
	SubThreadSafetyNotFound           Subtype = 103
)

// subtypeNames has the DAT names. NoSubtype has none, as in dat_strerror.
var subtypeNames = [...]string{
	SubInterrupted:                    "DAT_SUB_INTERRUPTED",
	SubResourceMemory:                 "DAT_RESOURCE_MEMORY",
	SubResourceDevice:                 "DAT_RESOURCE_DEVICE",
	SubResourceTEP:                    "DAT_RESOURCE_TEP",
	SubResourceTEVD:                   "DAT_RESOURCE_TEVD",
	SubResourceProtectionDomain:       "DAT_RESOURCE_PROTECTION_DOMAIN",
	SubResourceMemoryRegion:           "DAT_RESOURCE_MEMORY_REGION",
	SubResourceErrorHandler:           "DAT_RESOURCE_ERROR_HANDLER",
	SubResourceCredits:                "DAT_RESOURCE_CREDITS",
	SubResourceSRQ:                    "DAT_RESOURCE_SRQ",
	SubInvalidHandleIA:                "DAT_INVALID_HANDLE_IA",
	SubInvalidHandleEP:                "DAT_INVALID_HANDLE_EP",
	SubInvalidHandleLMR:               "DAT_INVALID_HANDLE_LMR",
	SubInvalidHandleRMR:               "DAT_INVALID_HANDLE_RMR",
	SubInvalidHandlePZ:                "DAT_INVALID_HANDLE_PZ",
	SubInvalidHandlePSP:               "DAT_INVALID_HANDLE_PSP",
	SubInvalidHandleRSP:               "DAT_INVALID_HANDLE_RSP",
	SubInvalidHandleCR:                "DAT_INVALID_HANDLE_CR",
	SubInvalidHandleCNO:               "DAT_INVALID_HANDLE_CNO",
	SubInvalidHandleEVDCR:             "DAT_INVALID_HANDLE_EVD_CR",
	SubInvalidHandleEVDRequest:        "DAT_INVALID_HANDLE_EVD_REQUEST",
	SubInvalidHandleEVDRecv:           "DAT_INVALID_HANDLE_EVD_RECV",
	SubInvalidHandleEVDConn:           "DAT_INVALID_HANDLE_EVD_CONN",
	SubInvalidHandleEVDAsync:          "DAT_INVALID_HANDLE_EVD_ASYNC",
	SubInvalidHandleSRQ:               "DAT_INVALID_HANDLE_SRQ",
	SubInvalidHandleCSP:               "DAT_INVALID_HANDLE_CSP",
	SubInvalidHandle1:                 "DAT_INVALID_HANDLE1",
	SubInvalidHandle2:                 "DAT_INVALID_HANDLE2",
	SubInvalidHandle3:                 "DAT_INVALID_HANDLE3",
	SubInvalidHandle4:                 "DAT_INVALID_HANDLE4",
	SubInvalidHandle5:                 "DAT_INVALID_HANDLE5",
	SubInvalidHandle6:                 "DAT_INVALID_HANDLE6",
	SubInvalidHandle7:                 "DAT_INVALID_HANDLE7",
	SubInvalidHandle8:                 "DAT_INVALID_HANDLE8",
	SubInvalidHandle9:                 "DAT_INVALID_HANDLE9",
	SubInvalidHandle10:                "DAT_INVALID_HANDLE10",
	SubInvalidArg1:                    "DAT_INVALID_ARG1",
	SubInvalidArg2:                    "DAT_INVALID_ARG2",
	SubInvalidArg3:                    "DAT_INVALID_ARG3",
	SubInvalidArg4:                    "DAT_INVALID_ARG4",
	SubInvalidArg5:                    "DAT_INVALID_ARG5",
	SubInvalidArg6:                    "DAT_INVALID_ARG6",
	SubInvalidArg7:                    "DAT_INVALID_ARG7",
	SubInvalidArg8:                    "DAT_INVALID_ARG8",
	SubInvalidArg9:                    "DAT_INVALID_ARG9",
	SubInvalidArg10:                   "DAT_INVALID_ARG10",
	SubInvalidStateEPUnconnected:      "DAT_INVALID_STATE_EP_UNCONNECTED",
	SubInvalidStateEPActConnPending:   "DAT_INVALID_STATE_EP_ACTCONNPENDING",
	SubInvalidStateEPPassConnPending:  "DAT_INVALID_STATE_EP_PASSCONNPENDING",
	SubInvalidStateEPTentConnPending:  "DAT_INVALID_STATE_EP_TENTCONNPENDING",
	SubInvalidStateEPConnected:        "DAT_INVALID_STATE_EP_CONNECTED",
	SubInvalidStateEPDisconnected:     "DAT_INVALID_STATE_EP_DISCONNECTED",
	SubInvalidStateEPReserved:         "DAT_INVALID_STATE_EP_RESERVED",
	SubInvalidStateEPComplPending:     "DAT_INVALID_STATE_EP_COMPLPENDING",
	SubInvalidStateEPDiscPending:      "DAT_INVALID_STATE_EP_DISCPENDING",
	SubInvalidStateEPProviderControl:  "DAT_INVALID_STATE_EP_PROVIDERCONTROL",
	SubInvalidStateEPNotReady:         "DAT_INVALID_STATE_EP_NOTREADY",
	SubInvalidStateEPRecvWatermark:    "DAT_INVALID_STATE_EP_RECV_WATERMARK",
	SubInvalidStateEPPZ:               "DAT_INVALID_STATE_EP_PZ",
	SubInvalidStateEPEVDRequest:       "DAT_INVALID_STATE_EP_EVD_REQUEST",
	SubInvalidStateEPEVDRecv:          "DAT_INVALID_STATE_EP_EVD_RECV",
	SubInvalidStateEPEVDConnect:       "DAT_INVALID_STATE_EP_EVD_CONNECT",
	SubInvalidStateEPUnconfigured:     "DAT_INVALID_STATE_EP_UNCONFIGURED",
	SubInvalidStateEPUnconfReserved:   "DAT_INVALID_STATE_EP_UNCONFRESERVED",
	SubInvalidStateEPUnconfPassive:    "DAT_INVALID_STATE_EP_UNCONFPASSIVE",
	SubInvalidStateEPUnconfTentative:  "DAT_INVALID_STATE_EP_UNCONFTENTATIVE",
	SubInvalidStateCNOInUse:           "DAT_INVALID_STATE_CNO_IN_USE",
	SubInvalidStateCNODead:            "DAT_INVALID_STATE_CNO_DEAD",
	SubInvalidStateEVDOpen:            "DAT_INVALID_STATE_EVD_OPEN",
	SubInvalidStateEVDEnabled:         "DAT_INVALID_STATE_EVD_ENABLED",
	SubInvalidStateEVDDisabled:        "DAT_INVALID_STATE_EVD_DISABLED",
	SubInvalidStateEVDWaitable:        "DAT_INVALID_STATE_EVD_WAITABLE",
	SubInvalidStateEVDUnwaitable:      "DAT_INVALID_STATE_EVD_UNWAITABLE",
	SubInvalidStateEVDInUse:           "DAT_INVALID_STATE_EVD_IN_USE",
	SubInvalidStateEVDConfigNotify:    "DAT_INVALID_STATE_EVD_CONFIG_NOTIFY",
	SubInvalidStateEVDConfigSolicited: "DAT_INVALID_STATE_EVD_CONFIG_SOLICITED",
	SubInvalidStateEVDConfigThreshold: "DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD",
	SubInvalidStateEVDWaiter:          "DAT_INVALID_STATE_EVD_WAITER",
	SubInvalidStateEVDAsync:           "DAT_INVALID_STATE_EVD_ASYNC",
	SubInvalidStateIAInUse:            "DAT_INVALID_STATE_IA_IN_USE",
	SubInvalidStateLMRInUse:           "DAT_INVALID_STATE_LMR_IN_USE",
	SubInvalidStateLMRFree:            "DAT_INVALID_STATE_LMR_FREE",
	SubInvalidStatePZInUse:            "DAT_INVALID_STATE_PZ_IN_USE",
	SubInvalidStatePZFree:             "DAT_INVALID_STATE_PZ_FREE",
	SubInvalidStateSRQOperational:     "DAT_INVALID_STATE_SRQ_OPERATIONAL",
	SubInvalidStateSRQError:           "DAT_INVALID_STATE_SRQ_ERROR",
	SubInvalidStateSRQInUse:           "DAT_INVALID_STATE_SRQ_IN_USE",
	SubInvalidStateSRQShutdown:        "DAT_INVALID_STATE_SRQ_SHUTDOWN",
	SubPrivilegesRead:                 "DAT_PRIVILEGES_READ",
	SubPrivilegesWrite:                "DAT_PRIVILEGES_WRITE",
	SubPrivilegesRDMARead:             "DAT_PRIVILEGES_RDMA_READ",
	SubPrivilegesRDMAWrite:            "DAT_PRIVILEGES_RDMA_WRITE",
	SubProtectionRead:                 "DAT_PROTECTION_READ",
	SubProtectionWrite:                "DAT_PROTECTION_WRITE",
	SubProtectionRDMARead:             "DAT_PROTECTION_RDMA_READ",
	SubProtectionRDMAWrite:            "DAT_PROTECTION_RDMA_WRITE",
	SubInvalidAddressUnsupported:      "DAT_INVALID_ADDRESS_UNSUPPORTED",
	SubInvalidAddressUnreachable:      "DAT_INVALID_ADDRESS_UNREACHABLE",
	SubInvalidAddressMalformed:        "DAT_INVALID_ADDRESS_MALFORMED",
	SubNameNotRegistered:              "DAT_NAME_NOT_REGISTERED",
	SubMajorNotFound:                  "DAT_MAJOR_NOT_FOUND",
	SubMinorNotFound:                  "DAT_MINOR_NOT_FOUND",
	SubThreadSafetyNotFound:           "DAT_THREAD_SAFETY_NOT_FOUND",
}

// String returns the DAT name, or "" for NoSubtype.
func (s Subtype) String() string {
	name := ""
	if int(s) < len(subtypeNames) {
		name = subtypeNames[s]
	}
	if s == NoSubtype {
		return ""
	}
	return enumName(name, "DAT_RETURN_SUBTYPE", s)
}
