/// Encodes text as JSON (RFC 8259).
public enum JSONText {
    /// `text` as a JSON string. It also escapes characters that terminals and line readers interpret: DEL, the C1
    /// control characters (U+0080 to U+009F) and Unicode’s two line separators. The result is always one line.
    public static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case ..<" ", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}":
                quoted += "\\u" + padded(String(scalar.value, radix: 16), 4)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
