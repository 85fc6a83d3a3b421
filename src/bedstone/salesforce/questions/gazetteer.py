"""Names of countries and states as questions use them; any other name after `in` counts as a city."""


def _names(text: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()).casefold() for name in text.split(","))


COUNTRIES = _names("""
    Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahamas,
    Bahrain, Bangladesh, Barbados, Belarus, Belgium, Belize, Benin, Bhutan, Bolivia, Bosnia and Herzegovina, Botswana,
    Brazil, Brunei, Bulgaria, Burkina Faso, Burundi, Cambodia, Cameroon, Canada, Cape Verde, Chad, Chile, China,
    Colombia, Congo, Costa Rica, Croatia, Cuba, Cyprus, Czechia, Czech Republic, Denmark, Dominican Republic, Ecuador,
    Egypt, El Salvador, England, Eritrea, Estonia, Eswatini, Ethiopia, Fiji, Finland, France, Gabon, Gambia, Georgia,
    Germany, Ghana, Greece, Guatemala, Guinea, Guyana, Haiti, Honduras, Hong Kong, Hungary, Iceland, India, Indonesia,
    Iran, Iraq, Ireland, Israel, Italy, Ivory Coast, Jamaica, Japan, Jordan, Kazakhstan, Kenya, Kosovo, Kuwait,
    Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Madagascar,
    Malawi, Malaysia, Maldives, Mali, Malta, Mauritania, Mauritius, Mexico, Moldova, Monaco, Mongolia, Montenegro,
    Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, Niger, Nigeria, North Korea,
    North Macedonia, Northern Ireland, Norway, Oman, Pakistan, Palestine, Panama, Papua New Guinea, Paraguay, Peru,
    Philippines, Poland, Portugal, Qatar, Romania, Russia, Rwanda, Samoa, San Marino, Saudi Arabia, Scotland, Senegal,
    Serbia, Seychelles, Sierra Leone, Slovakia, Slovenia, Somalia, South Africa, South Korea, Spain, Sri Lanka, Sudan,
    Suriname, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, Tonga, Trinidad and Tobago,
    Tunisia, Turkey, Turkmenistan, Uganda, Ukraine, United Arab Emirates, United Kingdom, United States, Uruguay,
    Uzbekistan, Vanuatu, Venezuela, Vietnam, Wales, Yemen, Zambia, Zimbabwe, UAE, UK, US, USA, America,
    Britain, Great Britain, Holland
""")
# States and provinces, except those that share their name with a city or a country.
REGIONS = _names("""
    Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Hawaii, Idaho, Illinois,
    Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota, Mississippi,
    Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, North Carolina, North Dakota, Ohio,
    Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont,
    Virginia, West Virginia, Wisconsin, Wyoming, Alberta, British Columbia, Manitoba, New Brunswick, Nova Scotia,
    Ontario, Saskatchewan, Bavaria, New South Wales, Queensland, Tasmania
""")
# What people write, and what records have.
COMMON_NAMES = {
    "usa": "United States", "us": "United States", "america": "United States", "uk": "United Kingdom",
    "britain": "United Kingdom", "great britain": "United Kingdom", "holland": "Netherlands",
}  # fmt: skip
