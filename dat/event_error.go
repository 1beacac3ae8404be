package dat

import "fmt"

// EventError is the error of an event; Event.Err returns it. Find it with errors.As to act on one of its fields.
type EventError struct {
	Number EventNumber
	Op     DTO         // completions: the operation
	Status DTOStatus   // completions: the result
	Reason BreakReason // connection events: the reason; 0 if there is none
}

// Error returns the DAT names, and the reason as a sentence.
func (e *EventError) Error() string {
	switch {
	case e.Number == EventDTOCompletion || e.Number == EventRMRBindCompletion || e.Number == EventIBDTO:
		return fmt.Sprintf("dat: operation failed: %v", e.Status)
	case e.Reason == 0:
		return fmt.Sprintf("dat: %v", e.Number)
	}
	return fmt.Sprintf("dat: %v: %v", e.Number, e.Reason)
}

// Err returns nil if the event reports success: a completion with DTOSuccess, EventConnectionRequest, EventEstablished,
// or EventSoftware. For every other event it returns an *EventError. EventDisconnected and the asynchronous events
// count as errors too, because the object of the event has ended or is impaired. Err allocates only if there is an
// error.
func (ev *Event) Err() error {
	switch ev.Number {
	case EventConnectionRequest, EventEstablished, EventSoftware:
		return nil
	case EventDTOCompletion, EventRMRBindCompletion, EventIBDTO:
		if ev.Status == DTOSuccess {
			return nil
		}
	default:
	}
	return &EventError{Number: ev.Number, Op: ev.Op, Status: ev.Status, Reason: ev.BreakReason}
}
