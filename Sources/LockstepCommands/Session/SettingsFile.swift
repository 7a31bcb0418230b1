import FoundationEssentials
import PodcastModel
import Yams

/// The settings' file: which key has which text in which line, and what it holds that is no setting.
struct SettingsFile: Sendable {
    /// A value and where it stands.
    struct Entry: Sendable, Hashable {
        var text: String
        var line: Int?
    }

    /// By key, such as `skip.forward`.
    private(set) var entries: [String: Entry] = [:]
    /// What cannot be read or is unknown, a sentence each.
    private(set) var problems: [String] = []
    private let path: String
    private let keys: [String]

    /// Reads the file at `path`, in which `keys` may stand. One that is not there is empty.
    init(path: String, keys: [String]) {
        self.path = path
        self.keys = keys
        guard FileManager.default.fileExists(atPath: path) else { return }
        do {
            let text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
            guard let root = try Yams.compose(yaml: text), !Self.isNothing(root) else { return }
            guard let mapping = root.mapping else {
                problems.append("The settings in \(path) are no list of keys and values, such as “plain: true”.")
                return
            }
            read(mapping, under: nil)
        } catch {
            problems.append("The settings in \(path) cannot be read: \(Self.reason(error)).")
        }
    }

    /// Where a key stands, in words.
    func place(of key: String) -> String { place(entries[key]?.line) }

    private func place(_ line: Int?) -> String { line.map { "\(path), line \($0)," } ?? path }

    private mutating func read(_ mapping: Node.Mapping, under group: String?) {
        for (name, value) in mapping {
            let line = name.mark?.line
            let key = [group, name.string ?? "?"].compactMap(\.self).joined(separator: ".")
            let isGroup = keys.contains { $0.hasPrefix(key + ".") }
            if keys.contains(key) {
                if let scalar = value.scalar, !Self.isNothing(value) {
                    entries[key] = Entry(text: scalar.string, line: line)
                } else {
                    let found = value.scalar == nil ? "more than one value" : "no value"
                    problems.append("\(key) in \(place(line)) has \(found); it must have one.")
                }
            } else if isGroup {
                if let inner = value.mapping {
                    read(inner, under: key)
                } else if !Self.isNothing(value) {
                    let inner = keys.filter { $0.hasPrefix(key + ".") }.joined(separator: " and ")
                    problems.append(
                        "\(key) in \(place(line)) is a group and has no value of its own; it holds \(inner).")
                }
            } else {
                problems.append("\(key) in \(place(line)) is no setting. \(advice(for: key))")
            }
        }
    }

    private func advice(for key: String) -> String {
        if let near = NearestWord.among(keys, to: key) { return "Did you mean \(near)?" }
        // Right by itself, but in the wrong group or in none.
        let name = key.split(separator: ".").last.map(String.init) ?? key
        let lasts = keys.map { $0.split(separator: ".").last.map(String.init) ?? $0 }
        if let near = NearestWord.among(lasts, to: name), let index = lasts.firstIndex(of: near) {
            return "Did you mean \(keys[index])?"
        }
        return "The settings are \(keys.joined(separator: ", "))."
    }

    /// Whether a node stands for nothing: empty, `~` or `null`.
    private static func isNothing(_ node: Node) -> Bool {
        guard let scalar = node.scalar else { return false }
        return scalar.style != .doubleQuoted && scalar.style != .singleQuoted
            && ["", "~", "null"].contains(scalar.string)
    }

    /// The reader's words on one line.
    private static func reason(_ error: any Error) -> String {
        switch error as? YamlError {
        case .scanner(let context, let problem, let mark, let text),
            .parser(let context, let problem, let mark, let text),
            .composer(let context, let problem, let mark, let text):
            // What is never closed is missed behind the last line: it is named where it was opened.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let last = lines.count - (text.hasSuffix("\n") ? 1 : 0)
            let line = mark.line > last ? context?.mark.line ?? last : mark.line
            return "\(problem) in line \(min(line, last))"
        case .duplicatedKeysInMapping(let duplicates, let context):
            return "\(duplicates.joined(separator: ", ")) stands twice in the group of line \(context.mark.line)"
        case nil: return "\(error)"
        case let other?: return "\(other)".split(separator: "\n").joined(separator: " ")
        }
    }
}
