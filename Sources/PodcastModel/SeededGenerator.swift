/// A reproducible random generator (Steele, Lea and Flood’s SplitMix64): for jitter, and for failures that can be
/// repeated; not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable, Hashable {
    private var state: UInt64

    /// Creates a generator whose numbers depend only on `seed`.
    public init(seed: UInt64) { state = seed }

    /// The next random number.
    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }

    /// The next random number from 0 to below 1.
    public mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// The next random number from 0 to below `bound`.
    public mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
