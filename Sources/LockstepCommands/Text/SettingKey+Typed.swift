import LockstepClient
import PodcastModel

extension SettingKey {
    /// Returns the key with a name, ignoring case, dashes and underscores.
    ///
    /// - Throws: `notFound`, with the nearest name.
    static func named(_ text: String) throws(Failure) -> SettingKey {
        let names = allCases.map(\.rawValue)
        if let name = NearestWord.among(names, to: text, within: 0), let key = SettingKey(rawValue: name) { return key }
        let advice = NearestWord.among(names, to: text).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no setting “\(text)”. \(advice)`lockstep set` lists them.")
    }

    /// Parses a value that a user typed. The seconds of a threshold need their unit, because 95 could also mean
    /// percent.
    ///
    /// - Throws: `invalidArgument` for an invalid value.
    func value(typed text: String) throws(Failure) -> String {
        guard self == .playedThreshold else { return try value(of: text) }
        if let number = DurationText.number(text) {
            let shown = NumberText.short(number)
            throw Failure(
                .invalidArgument,
                "\(rawValue) \(shown) is ambiguous. Write \(shown)% for a part of the length, or \(shown)s for seconds before the end."
            )
        }
        return try value(of: DurationText.spelled(text).map(NumberText.short) ?? text)
    }

    /// Formats a value so that `value(typed:)` accepts it.
    func shown(_ text: String) -> String {
        self == .playedThreshold && DurationText.number(text) != nil ? text + "s" : text
    }
}
