/// What a command has led to.
public struct Answer<Value: Sendable>: Sendable {
    /// Whether the command has changed something; false: it was so already.
    public let changed: Bool
    /// What there is now.
    public let value: Value
}

extension Answer: Equatable where Value: Equatable {}
