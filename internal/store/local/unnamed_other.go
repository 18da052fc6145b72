//go:build !linux

package local

import (
	"errors"
	"os"
)

func openUnnamed(string) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

func linkUnnamed(string, string) error { return errors.ErrUnsupported }
