package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// leastBytes holds one user.
const leastBytes = 600

type user struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Username string  `json:"username"`
	Email    string  `json:"email"`
	Address  address `json:"address"`
	Phone    string  `json:"phone"`
	Website  string  `json:"website"`
	Company  company `json:"company"`
}

type address struct {
	Street  string `json:"street"`
	Suite   string `json:"suite"`
	City    string `json:"city"`
	Zipcode string `json:"zipcode"`
	Geo     geo    `json:"geo"`
}

type geo struct {
	Lat string `json:"lat"`
	Lng string `json:"lng"`
}

type company struct {
	Name        string `json:"name"`
	CatchPhrase string `json:"catchPhrase"`
	Business    string `json:"bs"`
}

var (
	firstNames = []string{"Ada", "Bruno", "Clara", "Dilan", "Emeka", "Freja", "Goran", "Hana", "Ines", "Jonas"}
	lastNames  = []string{"Albers", "Bianchi", "Castro", "Demir", "Eriksen", "Fischer", "Garcia", "Hoang", "Ivanova"}
	streets    = []string{"Mill Lane", "Station Road", "Harbour Street", "Church Hill", "Orchard Way", "Canal Walk", "High Street"}
	cities     = []string{"Northwick", "Eastbridge", "Southmere", "Westhaven", "Midford"}
	phrases    = []string{"reliable parts for everyday machines", "quiet rooms in busy towns", "fresh bread before sunrise"}
	businesses = []string{"repairs, rentals and advice", "import and distribution", "design and small series"}
)

// users gives a JSON array of users of exactly so many bytes, always the same: as many users as
// fit, and the text of the last one as long as it must be.
func users(size int) ([]byte, error) {
	var list []user
	total := len("[\n\n]")
	for {
		next := nth(len(list) + 1)
		alone, err := encode([]user{next})
		if err != nil {
			return nil, err
		}
		more := len(alone) - len("[\n\n]")
		if len(list) > 0 {
			more += len(",\n")
		}
		if total+more > size {
			break
		}
		list, total = append(list, next), total+more
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%d bytes are too few for one user", size)
	}
	list[len(list)-1].Company.Business += strings.Repeat(".", size-total)
	return encode(list)
}

func encode(list []user) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	// Indented, as the API of the published benchmark answers.
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(list); err != nil {
		return nil, err
	}
	return bytes.TrimRight(text.Bytes(), "\n"), nil
}

func nth(n int) user {
	first, last := firstNames[n%len(firstNames)], lastNames[n%len(lastNames)]
	name := strings.ToLower(first)
	return user{
		ID: n, Name: first + " " + last, Username: fmt.Sprintf("%s%d", name, n),
		Email: fmt.Sprintf("%s.%s%d@example.com", name, strings.ToLower(last), n),
		Address: address{
			Street: streets[n%len(streets)], Suite: fmt.Sprintf("Apt. %d", 100+n*37%900),
			City: cities[n%len(cities)], Zipcode: fmt.Sprintf("%05d-%04d", n*7919%100000, n*104729%10000),
			Geo: geo{fmt.Sprintf("%d.%04d", n*13%90, n*7919%10000), fmt.Sprintf("-%d.%04d", n*29%180, n*6007%10000)},
		},
		Phone:   fmt.Sprintf("1-555-%03d-%04d", n*127%1000, n*3571%10000),
		Website: name + ".example.com",
		Company: company{
			Name:        last + " and Sons",
			CatchPhrase: "Makers of " + phrases[n%len(phrases)], Business: businesses[n%len(businesses)],
		},
	}
}
