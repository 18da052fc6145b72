package main

import "time"

// spent is the seconds that work took, and those that the cores of the process worked meanwhile: on a machine that others use the latter tell
// more.
type spent struct{ wall, cpu float64 }

type clock struct {
	start time.Time
	cores time.Duration
}

func startClock() clock { return clock{time.Now(), coreTime()} }

func (c clock) stop() spent {
	return spent{time.Since(c.start).Seconds(), (coreTime() - c.cores).Seconds()}
}
