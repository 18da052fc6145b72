// Package bloom answers: is a value certainly absent from a row group?
//
// It is the split-block Bloom filter of the Parquet specification ("Bloom Filter", XXH64 with seed 0 over the key-v1 bytes of
// each value), one per row group, cut into units so that a probe reads only what its keys touch. Nulls and NaNs are not in it.
//
// # Version 1
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version = 1
//	        encoding                index.Encoding: u8 kind, u8 scale, uv width
//	        uv body bytes
//	        uv row groups
//	        per row group
//	          uv rows
//	          u8 state              0 filter, 1 empty: every row null or NaN, 2 saturated: no filter kept; + 4: has NaN rows
//	          uv distinct values    states 0 and 2; 0: not counted
//	          u16 fill              states 0 and 2; share of set bits × 65,535, rounded up
//	          uv blocks             state 0
//	          u32 CRC32C            state 0; one per unit
//	body    the filters of the row groups in order, without gaps
//	filter  blocks of 32 bytes (eight 32-bit words), in units of 4,096 bytes, the last may be shorter
//
// A key's block is (hash >> 32) × blocks >> 32, its bits come from the low 32 bits of the hash, as in Parquet.
package bloom

import "math"

const (
	version   = 1
	blockSize = 32
	unitSize  = 4096
	// maxFilter bounds a row group's filter: 3.2 million keys at a false-positive rate of 1 %.
	maxFilter = 4 << 20
	maxBlocks = maxFilter / blockSize
	// maxFill is the share of set bits above which a filter is neither written nor believed: eight bits are tested, so 0.85⁸ = 27 %
	// of absent keys would pass, and a probe that fails that often costs more requests than it saves.
	maxFill = 0.85
	maxRoot = 16 << 20
	// maxProbe bounds the units that one probe reads; row groups beyond it are in doubt. A list of 256 keys in one row group fits.
	maxProbe = 256
	// maxTests bounds the keys that one probe tests, over all row groups: of so many one is nearly always a false positive.
	maxTests = 1 << 14
)

const (
	stateFilter = iota
	stateEmpty
	stateSaturated
	hasNaN = 4
)

const fillOne = 65535

func packFill(share float64) uint16 { return uint16(math.Ceil(share * fillOne)) }

func tooFull(fill uint16) bool { return float64(fill) > maxFill*fillOne }

// blockOf is the block of a hash in a filter of n blocks.
func blockOf(hash uint64, n uint32) uint32 { return uint32((hash >> 32) * uint64(n) >> 32) }

// keysPerBlock is the load at which a filter's false-positive rate reaches fpp. Keys fall into blocks by a Poisson law, and i keys
// in a block set any one of a word's 32 bits with probability 1 - (31/32)^i (Putze, Sanders, Singler 2007, section 3).
func keysPerBlock(fpp float64) float64 {
	lo, hi := 0.0, 256.0
	for range 20 {
		if mid := (lo + hi) / 2; rateAt(mid) > fpp {
			hi = mid
		} else {
			lo = mid
		}
	}
	return max(math.Floor(lo*64)/64, 1.0/64) // coarse, so that every machine gets the same filter size
}

func rateAt(load float64) float64 {
	sum, p := 0.0, math.Exp(-load)
	for i := 1; i < 1024 && (float64(i) < load || p > 1e-12); i++ {
		p *= load / float64(i)
		sum += p * math.Pow(1-math.Pow(31.0/32, float64(i)), 8)
	}
	return sum
}
