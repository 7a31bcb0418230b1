/// The fields of a request or a response in order, whose names are compared without regard to case.
package struct WebHeaders: Sendable, Hashable {
    package struct Field: Sendable, Hashable {
        /// The name as it was written.
        package var name: String
        /// The value without the spaces around it.
        package var value: String
    }

    /// All fields in order.
    package private(set) var fields: [Field] = []

    package init() {}

    /// The value of the first field of that name.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return fields.first { $0.name.lowercased() == wanted }?.value
    }

    /// Appends a field. A name or a value that no HTTP message can hold is left out: a value from a peer or from the disk
    /// must not add lines of its own.
    package mutating func add(_ name: String, _ value: String) {
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isNameByte),
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 })
        else { return }
        fields.append(Field(name: name, value: value))
    }

    /// Appends text to the value of the last field, for values that a server broke over two lines.
    mutating func continueLast(_ text: String) {
        guard let last = fields.indices.last else { return }
        fields[last].value += " " + text
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
