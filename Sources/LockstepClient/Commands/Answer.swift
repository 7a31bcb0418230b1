/// The reply to a command.
public struct Answer<Value: Sendable>: Sendable {
    /// Whether the command has changed something.
    public let changed: Bool
    /// The value after the command.
    public let value: Value
}

extension Answer: Equatable where Value: Equatable {}
