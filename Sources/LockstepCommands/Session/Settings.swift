import BusKit
import Configuration
import PodcastModel

/// What can be set in `config.yaml`, in the environment (`skip.forward` as `LOCKSTEP_SKIP_FORWARD`) and, where a command
/// has one, by a flag. The flag wins over the environment, the environment over the file.
struct Settings: Sendable, Hashable {
    /// How far `skip forward` and the right arrow go, in seconds.
    var skipForward = 30.0
    /// How far `skip back` and the left arrow go, in seconds.
    var skipBack = 10.0
    /// How much `speed up` adds.
    var speedStep = 0.1
    /// How much `volume up` adds, in per cent.
    var volumeStep = 5.0
    /// Whether screens are lines of words.
    var plain = false

    /// The defaults.
    init() {}

    /// Reads the file, which need not be there, and the environment.
    ///
    /// - Throws: `badConfiguration` naming the file or variable, the key and the reason.
    init(file: String, environment: [String: String]) async throws(Failure) {
        let source = try await SettingsSource(file: file, environment: environment)
        skipForward = try source.number("skip.forward", in: 1...3_600, else: skipForward)
        skipBack = try source.number("skip.back", in: 1...3_600, else: skipBack)
        speedStep = try source.number("speed.step", in: 0.01...1, else: speedStep)
        volumeStep = try source.number("volume.step", in: 1...50, else: volumeStep)
        plain = try source.flag("plain", else: plain)
    }
}

/// The two places that settings come from, asked one by one so that a bad value can be traced.
private struct SettingsSource {
    private let file: String
    private let fileReader: ConfigReader
    private let environmentReader: ConfigReader

    init(file: String, environment: [String: String]) async throws(Failure) {
        self.file = file
        environmentReader = ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: environment))
        let place = ConfigReader(
            provider: InMemoryProvider(values: [
                "filePath": .init(.string(file), isSecret: false), "allowMissing": .init(.bool(true), isSecret: false),
            ]))
        do {
            fileReader = ConfigReader(
                provider: try await FileProvider<YAMLSnapshot>(snapshotType: YAMLSnapshot.self, config: place))
        } catch {
            throw Failure(.badConfiguration, "The settings in \(file) cannot be read: \(error). Correct the file.")
        }
    }

    /// A value as text, with the words for where it stands.
    private func value(_ key: String) -> (text: String, place: String)? {
        if let text = environmentReader.string(forKey: ConfigKey("lockstep." + key)), !text.isEmpty {
            let variable = "LOCKSTEP_" + key.uppercased().replacing(".", with: "_")
            return (text, "the environment variable \(variable)")
        }
        return fileReader.string(forKey: ConfigKey(key)).map { ($0, "\(key) in \(file)") }
    }

    func number(_ key: String, in range: ClosedRange<Double>, else other: Double) throws(Failure) -> Double {
        guard let (text, place) = value(key) else { return other }
        guard let number = TimeText.number(text), range.contains(number) else {
            let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
            throw Failure(
                .badConfiguration, "\(place.capitalisedFirst) is “\(text)”; it must be a number from \(limits).")
        }
        return number
    }

    func flag(_ key: String, else other: Bool) throws(Failure) -> Bool {
        guard let (text, place) = value(key) else { return other }
        switch text.lowercased() {
        case "1", "true", "yes", "on": return true
        case "0", "false", "no", "off": return false
        default: throw Failure(.badConfiguration, "\(place.capitalisedFirst) is “\(text)”; it must be true or false.")
        }
    }
}

extension String {
    /// With a capital at the beginning, for a sentence; a path or a key stays as it is.
    fileprivate var capitalisedFirst: String {
        hasPrefix("the ") ? "T" + dropFirst() : self
    }
}
