/// HTML's named characters, which feeds use although XML does not know them.
public enum HTMLEntities {
    /// XML's own.
    private static let predefined = ["lt", "gt", "amp", "quot", "apos"].map { Array($0.utf8) }

    /// Whether it is one of XML's own five.
    static func isPredefined(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        predefined.contains { $0.count == name.count && name.elementsEqual($0) }
    }

    /// Those of Latin-1 and the usual typographical ones.
    public static let named: [String: Unicode.Scalar] = {
        // In the order of their code points from U+00A0 on.
        let latin = """
            nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
            micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
            AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
            times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
            egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash \
            ugrave uacute ucirc uuml yacute thorn yuml
            """
        var names: [String: Unicode.Scalar] = [
            "ndash": "\u{2013}", "mdash": "\u{2014}", "lsquo": "\u{2018}", "rsquo": "\u{2019}", "sbquo": "\u{201a}",
            "ldquo": "\u{201c}", "rdquo": "\u{201d}", "bdquo": "\u{201e}", "bull": "\u{2022}", "hellip": "\u{2026}",
            "prime": "\u{2032}", "lsaquo": "\u{2039}", "rsaquo": "\u{203a}", "euro": "\u{20ac}", "trade": "\u{2122}",
            "larr": "\u{2190}", "rarr": "\u{2192}", "minus": "\u{2212}", "OElig": "\u{152}", "oelig": "\u{153}",
            "Scaron": "\u{160}", "scaron": "\u{161}", "ensp": "\u{2002}", "emsp": "\u{2003}", "thinsp": "\u{2009}",
            "zwnj": "\u{200c}", "zwj": "\u{200d}", "dagger": "\u{2020}", "permil": "\u{2030}", "hearts": "\u{2665}",
        ]
        for (offset, name) in latin.split(separator: " ").enumerated() {
            names[String(name)] = Unicode.Scalar(UInt32(0xa0 + offset))
        }
        return names
    }()

    /// Whether the digits of `&#…;` name a character that XML allows.
    static func isCharacter(reference digits: Substring) -> Bool {
        let isHexadecimal = digits.hasPrefix("x") || digits.hasPrefix("X")
        guard !digits.hasPrefix("X"),
            let value = UInt32(isHexadecimal ? digits.dropFirst() : digits, radix: isHexadecimal ? 16 : 10),
            let scalar = Unicode.Scalar(value)
        else { return false }
        return scalar.value >= 0x20 ? (scalar.value & 0xfffe) != 0xfffe : [9, 10, 13].contains(scalar.value)
    }
}
