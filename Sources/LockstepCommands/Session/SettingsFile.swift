import FoundationEssentials
import PodcastModel

/// The values in the settings file with their lines, and the problems of the file.
struct SettingsFile: Sendable {
    /// The values by key, such as `skip.forward`.
    private(set) var entries: [String: (text: String, line: Int)] = [:]
    /// A sentence for each unreadable value and each unknown key.
    private(set) var problems: [String] = []
    private let path: String
    private let keys: [String]

    /// Reads a file with these keys, which need not exist.
    init(path: String, keys: [String]) {
        self.path = path
        self.keys = keys
        guard FileManager.default.fileExists(atPath: path) else { return }
        do {
            switch try SettingsText(try String(contentsOf: URL(filePath: path), encoding: .utf8)).root {
            case .text: return
            case .list: problems.append("\(path) isn’t a mapping of settings to values, such as “plain: true”.")
            case .group(let entries): read(entries, under: nil)
            }
        } catch let problem as SettingsText.Problem {
            problems.append("Couldn’t read the settings in \(path): \(problem.message).")
        } catch {
            problems.append("Couldn’t read the settings in \(path). Is it a text file in UTF-8?")
        }
    }

    func location(_ line: Int) -> String { "\(path), line \(line)," }

    private mutating func read(_ found: [SettingsText.Entry], under group: String?) {
        for entry in found {
            let key = [group, entry.key].compactMap(\.self).joined(separator: ".")
            let isGroup = keys.contains { $0.hasPrefix(key + ".") }
            if keys.contains(key) {
                switch entry.value {
                case .text(let text) where !text.isEmpty: entries[key] = (text, entry.line)
                case .text: problems.append("\(key) in \(location(entry.line)) has no value; it must have one.")
                case .group, .list:
                    problems.append("\(key) in \(location(entry.line)) has more than one value; it must have one.")
                }
            } else if isGroup {
                switch entry.value {
                case .group(let inner): read(inner, under: key)
                case .text(""): continue
                case .text, .list:
                    let inner = keys.filter { $0.hasPrefix(key + ".") }.joined(separator: " and ")
                    problems.append(
                        "\(key) in \(location(entry.line)) is a group and has no value of its own; it holds \(inner).")
                }
            } else {
                problems.append("\(key) in \(location(entry.line)) isn’t a setting. \(advice(for: key))")
            }
        }
    }

    private func advice(for key: String) -> String {
        if let near = NearestWord.among(keys, to: key) { return "Did you mean \(near)?" }
        // The name is valid, but in the wrong group, or in none.
        let name = key.split(separator: ".").last.map(String.init) ?? key
        let lasts = keys.map { $0.split(separator: ".").last.map(String.init) ?? $0 }
        if let near = NearestWord.among(lasts, to: name), let index = lasts.firstIndex(of: near) {
            return "Did you mean \(keys[index])?"
        }
        return "The settings are \(keys.joined(separator: ", "))."
    }
}
