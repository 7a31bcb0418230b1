import PodcastModel

/// The fields of a request or a response in order; their names are compared case-insensitively.
package struct WebHeaders: Sendable, Hashable {
    package struct Field: Sendable, Hashable {
        /// The name in its original case.
        package var name: String
        /// The value without surrounding spaces.
        package var value: String
    }

    /// All fields in order.
    package private(set) var fields: [Field] = []

    package init() {}

    /// The value of the first field with this name.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return fields.first { $0.name.lowercased() == wanted }?.value
    }

    /// Appends a field. A name or a value that is invalid in HTTP is omitted: a value from a peer or from the disk
    /// must not inject further fields.
    package mutating func add(_ name: String, _ value: String) {
        let isName = name.utf8.allSatisfy { $0.isASCIIAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains($0) }
        guard !name.isEmpty, isName, value.utf8.allSatisfy({ !$0.isASCIIControl || $0 == 0x09 }) else { return }
        fields.append(Field(name: name, value: value))
    }

    /// Appends text to the value of the last field, for a value that a server has folded onto the next line.
    mutating func continueLast(_ text: String) {
        guard let last = fields.indices.last else { return }
        fields[last].value += " " + text
    }
}
