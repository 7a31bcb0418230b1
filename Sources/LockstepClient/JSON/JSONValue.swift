import PodcastModel

/// A JSON value whose objects preserve the order of their members, so that output is deterministic.
public indirect enum JSONValue: Sendable, Hashable {
    /// The value `null`.
    case null
    /// A Boolean value.
    case bool(Bool)
    /// A whole number within `Int64`.
    case integer(Int64)
    /// A whole number that may be larger than `Int64`.
    case unsigned(UInt64)
    /// A number; non-finite values are written as null.
    case number(Double)
    /// A string of characters.
    case string(String)
    /// The values of an array, in order.
    case array([JSONValue])
    /// The members of an object, in order.
    case object([Member])

    /// A member of an object: a name and its value.
    public struct Member: Sendable, Hashable {
        /// The name in lowerCamelCase.
        public var name: String
        /// The member’s value.
        public var value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    package static func object(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
        .object(members.map { Member(name: $0.key, value: $0.value) })
    }

    /// A number of seconds, rounded to milliseconds.
    package static func seconds(_ value: Double) -> JSONValue { .number((value * 1_000).rounded() / 1_000) }

    /// A number of seconds, or null where 0 means unknown.
    package static func knownSeconds(_ value: Double) -> JSONValue { value > 0 ? seconds(value) : .null }

    /// A whole number, or null where 0 means unknown or none.
    package static func known(_ value: some FixedWidthInteger) -> JSONValue {
        value == 0 ? .null : Int64(exactly: value).map { .integer($0) } ?? .unsigned(UInt64(clamping: value))
    }

    /// A time in seconds since 1970, or null where 0 means never.
    package static func moment(milliseconds: Int64) -> JSONValue {
        milliseconds == 0 ? .null : .number(Double(milliseconds) / 1_000)
    }

    /// A string, or null if it is empty.
    package static func text(_ text: String) -> JSONValue { text.isEmpty ? .null : .string(text) }

    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// Returns an object with one more member at its end, instead of one of the same name; other values are unchanged.
    package func adding(_ name: String, _ value: JSONValue) -> JSONValue { adding([name: value]) }

    /// Returns an object with more members at its end, instead of those of the same names; other values are unchanged.
    func adding(_ more: KeyValuePairs<String, JSONValue>) -> JSONValue {
        guard case .object(let members) = self else { return self }
        let names = Set(more.map(\.key))
        return .object(
            members.filter { !names.contains($0.name) } + more.map { Member(name: $0.key, value: $0.value) })
    }

    /// The JSON text, on one line.
    public var line: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += "\(value)"
        case .unsigned(let value): text += "\(value)"
        case .number(let value): Self.write(value, to: &text)
        case .string(let value): text += JSONText.quoted(value)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                text += JSONText.quoted(member.name) + ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ value: Double, to text: inout String) {
        if !value.isFinite {
            text += "null"
        } else if value == value.rounded(), abs(value) < 9_007_199_254_740_992 {
            text += "\(Int64(value))"
        } else {
            text += "\(value)"
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}
