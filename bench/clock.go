package main

import (
	"syscall"
	"time"
)

// spent is the seconds that work took, and those that the process computed meanwhile, user and system together: on a machine that others
// use the latter tell more.
type spent struct{ wall, cpu float64 }

type clock struct {
	start time.Time
	cpu   float64
}

func startClock() clock { return clock{time.Now(), processCPU()} }

func (c clock) stop() spent { return spent{time.Since(c.start).Seconds(), processCPU() - c.cpu} }

// processCPU is the seconds that all threads of the process computed.
func processCPU() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}
